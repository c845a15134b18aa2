/**
 * A GPU in JavaScript, for checks of kernels that no software adapter runs: it repeats the computations of
 * their texts on the bytes of their buffers, with float32 where they use it. Its tensor cores truncate
 * instead of rounding.
 *
 */
import { halfBits, halfValue, roundToHalf } from '../../../gpu/checks/support/float16.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../../gpu/webgpu/kernel.ts';
import { OBJECTIVE_ROWS } from '../../../gpu/loss/objective-sums.ts';
import { int8Pieces } from '../../../gpu/int8/int8-plan.ts';
import { centresRatings } from '../../../gpu/equations/tensor-plan.ts';
import {
  cutOff,
  dot,
  dualSolution,
  type Equations,
  gradients,
  objectiveOf,
  type Shifts,
} from './emulated-systems.ts';
import { tensorGpu } from './gpu-info.ts';
import { matrixElements, paddedRank, slotElements, TILE, tilesOf } from '../../../gpu/device/slots.ts';

interface HostBuffer {
  readonly bytes: ArrayBuffer;
  destroy(): void;
}

type Buffers = Readonly<Record<string, HostBuffer>>;
type Uniforms = Readonly<Record<string, number>>;
type Params = KernelParams & { readonly rank: number; readonly biases: boolean };
type Emulation = (params: Params, buffers: Buffers, uniforms: Uniforms) => void;

const { fround } = Math;

/** Opens the emulation. `fault` changes a kernel's outputs, to see that its checks notice. */
export function emulatedGpu(fault: (kernel: string, buffers: Buffers) => void = () => {}): Gpu {
  const bufferOf = async (source: Float32Array | Uint32Array | Int32Array): Promise<HostBuffer> => {
    const bytes = new ArrayBuffer(Math.ceil(source.byteLength / 16) * 16);
    new Uint8Array(bytes).set(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
    return { bytes, destroy: () => {} };
  };
  const writeBuffer = ({ bytes }: HostBuffer, at: number, source: Uint32Array) =>
    new Uint8Array(bytes, at).set(new Uint8Array(source.buffer));
  const gpu = {
    info: tensorGpu,
    admits: () => true,
    device: { queue: { writeBuffer } },
    scratch: async (_name: string, bytes: number): Promise<HostBuffer> => ({
      bytes: new ArrayBuffer(Math.ceil(bytes / 16) * 16),
      destroy: () => {},
    }),
    bufferOf,
    download: async ({ bytes }: HostBuffer, target: Float32Array | Uint32Array) =>
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(
        new Uint8Array(bytes, 0, target.byteLength),
      ),
    compile: async (kernel: KernelDescriptor, params: KernelParams) => ({ kernel, params }),
    pass: () => {
      const pass = {
        dispatch(
          { kernel, params }: { readonly kernel: KernelDescriptor; readonly params: KernelParams },
          buffers: Buffers,
          uniforms: Uniforms,
        ) {
          for (const { name } of kernel.bindings)
            if (buffers[name] === undefined) throw new Error(`no buffer for ${name}`);
          for (const name of Object.keys(kernel.uniforms))
            if (uniforms[name] === undefined) throw new Error(`no value for ${name}`);
          emulations[kernel.name](params as Params, buffers, uniforms);
          fault(kernel.name, buffers);
          return pass;
        },
        submit: async ({
          read,
        }: {
          readonly read: { readonly buffer: HostBuffer; readonly bytes: number };
        }) => ({ times: {}, bytes: read.buffer.bytes.slice(0, read.bytes) }),
      };
      return pass;
    },
  };
  return gpu as unknown as Gpu;
}

const emulations: Readonly<Record<string, Emulation>> = {
  'normal-equations-tensor': (params, buffers, uniforms) => {
    const { rank, biases } = params;
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [, first, ratings, slot] of entries(buffers, uniforms)) {
      writeSlot(slots, slot, rank, biases, sums(params, buffers, uniforms, first, ratings));
    }
  },
  'update-tensor': (params, buffers, uniforms) => {
    const { halfA } = params as Params & { readonly halfA: boolean };
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const equations = sums(params, buffers, uniforms, first, ratings);
      solveRow(params, buffers, uniforms, { row, ratings, equations, halfA, half: true, tensor: true });
    }
  },
  'normal-equations-int8': (params, buffers, uniforms) =>
    emulations['normal-equations-tensor'](params, buffers, uniforms),
  'update-int8': (params, buffers, uniforms) => emulations['update-tensor'](params, buffers, uniforms),
  'solve-cg-registers': (params, buffers, uniforms) => {
    const { rank, halfA, half } = params as Params & { readonly halfA: boolean; readonly half: boolean };
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [row, first, ratings, count] of entries(buffers, uniforms)) {
      let equations: Equations = {
        a: new Float32Array(rank * rank),
        b: new Float32Array(rank),
        s: new Float32Array(rank),
        t: 0,
      };
      for (let slot = first; slot < first + count; slot++)
        equations = withSlot(equations, slots, slot, rank, params.biases);
      solveRow(params, buffers, uniforms, { row, ratings, equations, halfA, half, tensor: false });
    }
  },
  'update-short': (params, buffers, uniforms) => {
    const { rank } = params;
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const { theta, r } = gathered(
        params,
        buffers,
        { ...uniforms, scale: 1 },
        first,
        ratings,
        fround,
        params.centre === true,
      );
      const { shift, ownShift } = shiftsOf(params, buffers, row);
      const ratio = ownShift === undefined ? 0 : fround(shift / ownShift);
      const k = new Float32Array(ratings * ratings);
      for (let i = 0; i < ratings; i++)
        for (let j = 0; j < ratings; j++) k[i * ratings + j] = dot(theta[i], theta[j]);
      const y = dualSolution(
        k.map((value) => value + ratio),
        r,
        shift,
      );
      const bias = ratio * y.reduce((sum, value) => sum + value, 0);
      writeRow(
        params,
        buffers,
        row,
        Float32Array.from({ length: rank + 1 }, (_, f) =>
          f === rank ? bias : theta.reduce((sum, row, i) => fround(sum + fround(y[i] * row[f])), 0),
        ),
        true,
        shift * dot(r, y) - dot(r, r),
      );
    }
  },
  'row-shifts': (
    _params,
    buffers,
    { count, first, width, at, lambda, exponent, offset, damping, bias_lambda: ownLambda },
  ) => {
    const [pointers, shifts] = [new Int32Array(buffers.counts.bytes), new Float32Array(buffers.shifts.bytes)];
    for (let k = 0; k < count; k++) {
      const n = pointers[at + k + 1] - pointers[at + k];
      const place = (first + k) * width;
      shifts[place] = fround(lambda) * n ** exponent + offset;
      if (width === 2) shifts[place + 1] = fround(ownLambda) * n + damping;
    }
  },
  'objective-sums': (_params, { status, results }, { from_row: from, to_row: to }) => {
    const [told, sums] = [status, results].map(({ bytes }) => new Float32Array(bytes));
    for (let row = from; row < to; row++)
      sums[1 + Math.floor((row - from) / OBJECTIVE_ROWS)] += told[4 + row];
    new Uint32Array(results.bytes)[0] = new Uint32Array(status.bytes)[0];
  },
  'subtract-bias': (_params, buffers, { first, fours, mean }) => {
    const indices = new Uint32Array(buffers.indices.bytes);
    const [values, fixedBias, centred] = [buffers.values, buffers.fixed_bias, buffers.centred].map(
      ({ bytes }) => new Float32Array(bytes),
    );
    for (let k = 4 * first; k < Math.min(4 * (first + fours), indices.length); k++)
      centred[k] = fround(values[k] - fround(mean + fixedBias[indices[k]]));
  },
  'column-maxima': ({ rank }, { half, maxima }, { rows }) => {
    const [values, found] = [
      Float32Array.from(new Uint16Array(half.bytes), halfValue),
      new Float32Array(maxima.bytes),
    ];
    const stride = tilesOf(rank) * TILE;
    for (let at = 0; at < rows * stride; at++)
      found[at % stride] = Math.max(found[at % stride], Math.abs(values[at]));
  },
  'to-int8': ({ rank }, { half, maxima, rounded, scales }, { rows }) => {
    const [values, found] = [
      Float32Array.from(new Uint16Array(half.bytes), halfValue),
      new Float32Array(maxima.bytes),
    ];
    const [stride, pitch, target] = [
      tilesOf(rank) * TILE,
      16 * int8Pieces(rank),
      new Int8Array(rounded.bytes),
    ];
    for (let at = 0; at < rows * stride; at++)
      target[Math.floor(at / stride) * pitch + (at % stride)] = Math.round(
        (127 * values[at]) / Math.max(found[at % stride], 1e-30),
      );
    new Float32Array(scales.bytes).set(found.map((value) => value / 127).subarray(0, stride));
  },
};

function* entries({ work }: Buffers, { count }: Uniforms) {
  const list = new Uint32Array(work.bytes);
  for (let i = 0; i < count; i++) yield list.subarray(4 * i, 4 * i + 4);
}

/** Solves a row by steps of CG, and writes it. */
function solveRow(
  params: Params,
  buffers: Buffers,
  { steps }: Uniforms,
  row: {
    readonly row: number;
    readonly ratings: number;
    readonly equations: Equations;
    readonly halfA: boolean;
    readonly half: boolean;
    readonly tensor: boolean;
  },
): void {
  const { row: at, ratings, equations } = row;
  const [shifts, start] = [shiftsOf(params, buffers, at), startOf(params, buffers, at)];
  const x =
    ratings === 0
      ? new Float32Array(params.rank + 1)
      : gradients(equations, start, steps, shifts, ratings, row.halfA, row.tensor);
  writeRow(params, buffers, at, x, row.half, objectiveOf(equations, x, shifts, ratings));
}

/** Regularization of a row, as parts/row-shift.wgsl reads it. */
function shiftsOf({ biases }: Params, buffers: Buffers, row: number): Shifts {
  const shifts = new Float32Array(buffers.shifts.bytes);
  return biases ? { shift: shifts[2 * row], ownShift: shifts[2 * row + 1] } : { shift: shifts[row] };
}

/** Rows of θ and ratings of a part, as the kernel stages them. */
function gathered(
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
          : halfValue(halves[column * stride + f]),
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
function sums(params: Params, buffers: Buffers, uniforms: Uniforms, first: number, count: number): Equations {
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

function startOf({ rank }: Params, buffers: Buffers, row: number): Float32Array {
  const stride = tilesOf(rank) * TILE;
  return new Float32Array(buffers.previous.bytes).slice(row * stride, row * stride + rank);
}

/** `x`: a row's factors and its bias. */
function writeRow(
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
function writeSlot(
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

function withSlot(
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
