/**
 * Rows and slots in the buffers of the GPU in JavaScript, and the sums of rows by its tensor cores, which
 * truncate instead of rounding.
 */
import { fromHalf } from '../../../engine/numbers/half.ts';
import { halfBits, roundToHalf } from '../../../gpu/checks/support/check.ts';
import { matrixElements, paddedRank, slotElements, TILE, tilesOf } from '../../../gpu/device/slots.ts';
import { centresRatings } from '../../../gpu/equations/tensor-plan.ts';
import { int8Pieces } from '../../../gpu/int8/int8-plan.ts';
import type { KernelParams } from '../../../gpu/webgpu/kernel.ts';
import { cutOff, type Equations, type Shifts } from './emulated-systems.ts';

/** A buffer on the host. */
export interface HostBuffer {
  readonly bytes: ArrayBuffer;
  destroy(): void;
}

export type Buffers = Readonly<Record<string, HostBuffer>>;
export type Uniforms = Readonly<Record<string, number>>;
export type Params = KernelParams & { readonly rank: number; readonly biases: boolean };

const { fround } = Math;

/** Regularization of a row, as parts/rows.wgsl reads it. */
export function shiftsOf({ biases }: Params, buffers: Buffers, row: number): Shifts {
  const shifts = new Float32Array(buffers.shifts.bytes);
  return biases ? { shift: shifts[2 * row], ownShift: shifts[2 * row + 1] } : { shift: shifts[row] };
}

/** Rows of θ and ratings of a part, as the kernel stages them. */
export function gathered(
  { rank }: Params,
  buffers: Buffers,
  { scale, mean }: Uniforms,
  first: number,
  count: number,
  round: (value: number) => number,
  centre: boolean,
) {
  const scales = buffers.scales && new Float32Array(buffers.scales.bytes);
  const [halves, eighths] = [new Uint16Array(buffers.fixed.bytes), new Int8Array(buffers.fixed.bytes)];
  const rounded = scales ? (value: number) => Math.max(-32_000, Math.min(32_000, Math.round(value))) : round;
  const indices = new Uint32Array(buffers.indices.bytes);
  const [values, fixedBias] = [buffers.values, buffers.fixed_bias].map(
    ({ bytes }) => new Float32Array(bytes),
  );
  const stride = tilesOf(rank) * TILE;
  const theta: Float32Array[] = [];
  const r = new Float32Array(count);
  for (let k = 0; k < count; k++) {
    const column = indices[first + k];
    theta.push(
      Float32Array.from({ length: rank }, (_, f) =>
        scales
          ? eighths[column * 16 * int8Pieces(rank) + f] * scales[f]
          : fromHalf(halves[column * stride + f]),
      ),
    );
    r[k] = rounded(
      fround(
        (centre ? fround(values[first + k] - fround(mean + fixedBias[column])) : values[first + k]) * scale,
      ),
    );
  }
  return { theta, r };
}

/** A, b, s and t: products of sixteen ratings at a time, added to a truncated float32. */
export function sums(
  params: Params,
  buffers: Buffers,
  uniforms: Uniforms,
  first: number,
  count: number,
): Equations {
  const { rank, biases } = params;
  const { theta, r } = gathered(
    params,
    buffers,
    uniforms,
    first,
    count,
    roundToHalf,
    buffers.scales ? biases : centresRatings({ rank, biases }),
  );
  const [a, b, s] = [new Float32Array(rank * rank), new Float32Array(rank), new Float32Array(rank)];
  let t = 0;
  for (let from = 0; from < count; from += 16) {
    const to = Math.min(from + 16, count);
    for (let i = 0; i < rank; i++) {
      for (let j = 0; j <= i; j++) {
        let product = a[i * rank + j];
        for (let k = from; k < to; k++) product += theta[k][i] * theta[k][j];
        a[i * rank + j] = a[j * rank + i] = cutOff(product);
      }
      let product = b[i];
      for (let k = from; k < to; k++) product += theta[k][i] * r[k];
      b[i] = cutOff(product);
      for (let k = from; k < to; k++) s[i] += theta[k][i];
    }
    for (let k = from; k < to; k++) t = fround(t + r[k]);
  }
  return { a, b: b.map((value) => value * uniforms.unscale), s, t: fround(t * uniforms.unscale) };
}

export function startOf({ rank }: Params, buffers: Buffers, row: number): Float32Array {
  const stride = tilesOf(rank) * TILE;
  return new Float32Array(buffers.previous.bytes).slice(row * stride, row * stride + rank);
}

/** `x`: a row's factors and its bias. */
export function writeRow(
  { rank, biases }: Params,
  buffers: Buffers,
  row: number,
  x: Float32Array,
  half: boolean,
  objective: number,
): void {
  new Float32Array(buffers.status.bytes)[4 + row] = objective;
  const stride = tilesOf(rank) * TILE;
  const status = new Uint32Array(buffers.status.bytes);
  const stored = new Float32Array(stride);
  stored.set(x.subarray(0, rank));
  if (!stored.every((value) => Number.isFinite(value))) status[0] = Math.min(status[0], row);
  if (biases) new Float32Array(buffers.bias.bytes)[row] = x[rank];
  new Float32Array(buffers.factors.bytes).set(stored, row * stride);
  if (half) new Uint16Array(buffers.half.bytes).set(Uint16Array.from(stored, halfBits), row * stride);
}

/** Writes a slot, with some number beyond the rank, as tensor cores do. */
export function writeSlot(
  slots: Float32Array,
  slot: number,
  rank: number,
  biases: boolean,
  { a, b, s, t }: Equations,
): void {
  const elements = slotElements(rank, biases);
  const first = slot * elements;
  slots.fill(77, first, first + elements);
  eachElement(rank, (at, i, j) => (slots[first + at] = a[i * rank + j]));
  slots.set(b, first + matrixElements(rank));
  if (!biases) return;
  slots.set(s, first + matrixElements(rank) + paddedRank(rank));
  slots[first + matrixElements(rank) + 2 * paddedRank(rank)] = t;
}

export function withSlot(
  { a, b, s, t }: Equations,
  slots: Float32Array,
  slot: number,
  rank: number,
  biases: boolean,
): Equations {
  const first = slot * slotElements(rank, biases);
  eachElement(rank, (at, i, j) => {
    a[i * rank + j] += slots[first + at];
    if (i >> 4 !== j >> 4) a[j * rank + i] = a[i * rank + j];
  });
  for (let i = 0; i < rank; i++) b[i] += slots[first + matrixElements(rank) + i];
  if (biases)
    for (let i = 0; i < rank; i++) s[i] += slots[first + matrixElements(rank) + paddedRank(rank) + i];
  return { a, b, s, t: biases ? fround(t + slots[first + matrixElements(rank) + 2 * paddedRank(rank)]) : 0 };
}

function eachElement(rank: number, visit: (at: number, i: number, j: number) => void): void {
  for (let i = 0; i < rank; i++)
    for (let j = 0; j < Math.min(rank, ((i >> 4) + 1) * 16); j++)
      visit(((((i >> 4) * ((i >> 4) + 1)) / 2 + (j >> 4)) << 8) + (i & 15) * 16 + (j & 15), i, j);
}
