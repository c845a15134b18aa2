/**
 * A GPU in JavaScript, for checks of kernels that no software adapter runs: it repeats the computations of their texts on the bytes
 * of their buffers, with float32 where they use it. Its tensor cores truncate instead of rounding.
 */
import { RESIDUAL_TOLERANCE } from '../../../gpu/kernels/solve/solve-cg.ts';
import { halfBits, halfValue, roundToHalf } from '../../../gpu/kernels/checking/float16.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../../gpu/kernels/kernel.ts';
import { TILE, tilesOf } from '../../../gpu/kernels/normal-equations/slots.ts';

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
  const gpu = {
    admits: () => true,
    bufferOf,
    download: async ({ bytes }: HostBuffer, target: Float32Array | Uint32Array) => new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(new Uint8Array(bytes, 0, target.byteLength)),
    compile: async (kernel: KernelDescriptor, params: KernelParams) => ({ kernel, params }),
    pass: () => {
      const pass = {
        dispatch({ kernel, params }: { readonly kernel: KernelDescriptor; readonly params: KernelParams }, buffers: Buffers, uniforms: Uniforms) {
          for (const { name } of kernel.bindings) if (buffers[name] === undefined) throw new Error(`no buffer for ${name}`);
          for (const { name } of kernel.uniforms) if (uniforms[name] === undefined) throw new Error(`no value for ${name}`);
          emulations[kernel.name](params as Params, buffers, uniforms);
          fault(kernel.name, buffers);
          return pass;
        },
        submit: async ({ read }: { readonly read: { readonly buffer: HostBuffer; readonly bytes: number } }) => ({ times: {}, bytes: read.buffer.bytes.slice(0, read.bytes) }),
      };
      return pass;
    },
  };
  return gpu as unknown as Gpu;
}

interface Equations {
  /** A: rank x rank. */
  readonly a: Float32Array;
  readonly b: Float32Array;
}

const emulations: Readonly<Record<string, Emulation>> = {
  'normal-equations-tensor': ({ rank, biases }, buffers, uniforms) => {
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [, first, ratings, slot] of entries(buffers, uniforms)) {
      const { a, b } = sums(rank, biases, buffers, uniforms, first, ratings);
      writeSlot(slots, slot, rank, a, b);
    }
  },
  'update-tensor': (params, buffers, uniforms) => {
    const { rank, biases, steps, halfA } = params as Params & { readonly steps: number; readonly halfA: boolean };
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const equations = sums(rank, biases, buffers, uniforms, first, ratings);
      writeRow(params, buffers, row, ratings === 0 ? new Float32Array(rank) : gradients(equations, startOf(params, buffers, row), steps, uniforms.lambda, ratings, halfA), true);
    }
  },
  'solve-cg-registers': (params, buffers, uniforms) => {
    const { rank, steps, halfA, half } = params as Params & { readonly steps: number; readonly halfA: boolean; readonly half: boolean };
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [row, first, ratings, count] of entries(buffers, uniforms)) {
      const equations = { a: new Float32Array(rank * rank), b: new Float32Array(rank) };
      for (let slot = first; slot < first + count; slot++) addSlot(equations, slots, slot, rank);
      writeRow(params, buffers, row, ratings === 0 ? new Float32Array(rank) : gradients(equations, startOf(params, buffers, row), steps, uniforms.lambda, ratings, halfA), half);
    }
  },
  'update-short': (params, buffers, uniforms) => {
    const { rank, biases } = params;
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const { theta, r } = gathered(rank, biases, buffers, { ...uniforms, scale: 1 }, first, ratings, fround);
      const k = new Float32Array(ratings * ratings);
      for (let i = 0; i < ratings; i++) for (let j = 0; j < ratings; j++) k[i * ratings + j] = dot(theta[i], theta[j]);
      const y = dualSolution(k, r, uniforms.lambda * ratings);
      writeRow(params, buffers, row, Float32Array.from({ length: rank }, (_, f) => theta.reduce((sum, row, i) => fround(sum + fround(y[i] * row[f])), 0)), true);
    }
  },
};

function* entries({ work }: Buffers, { count }: Uniforms) {
  const list = new Uint32Array(work.bytes);
  for (let i = 0; i < count; i++) yield list.subarray(4 * i, 4 * i + 4);
}

/** Rows of θ and ratings of a part, as the kernel stages them. */
function gathered(rank: number, biases: boolean, buffers: Buffers, { mean, scale }: Uniforms, first: number, count: number, round: (value: number) => number) {
  const halves = new Uint16Array(buffers.fixed.bytes);
  const [indices, values, bias] = [new Uint32Array(buffers.indices.bytes), new Float32Array(buffers.values.bytes), new Float32Array(buffers.fixed_bias.bytes)];
  const stride = tilesOf(rank) * TILE;
  const theta: Float32Array[] = [];
  const r = new Float32Array(count);
  for (let k = 0; k < count; k++) {
    const column = indices[first + k];
    theta.push(Float32Array.from({ length: rank }, (_, f) => halfValue(halves[column * stride + f])));
    r[k] = round(fround(fround(values[first + k] - (biases ? fround(mean + bias[column]) : 0)) * scale));
  }
  return { theta, r };
}

/** A and b: products of sixteen ratings at a time, added to a truncated float32. */
function sums(rank: number, biases: boolean, buffers: Buffers, uniforms: Uniforms, first: number, count: number): Equations {
  const { theta, r } = gathered(rank, biases, buffers, uniforms, first, count, roundToHalf);
  const [a, b] = [new Float32Array(rank * rank), new Float32Array(rank)];
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
    }
  }
  return { a, b: b.map((value) => value * uniforms.unscale) };
}

/** The value rounded to float32 towards zero. */
function cutOff(value: number): number {
  const rounded = fround(value);
  if (Math.abs(rounded) <= Math.abs(value) || !Number.isFinite(value)) return rounded;
  const bits = new Uint32Array(Float32Array.of(rounded).buffer);
  bits[0]--;
  return new Float32Array(bits.buffer)[0];
}

/** The computation of gpu/kernels/parts/register-cg.wgsl. */
export function gradients({ a, b: given }: Equations, start: Float32Array, steps: number, lambda: number, ratings: number, halfA: boolean): Float32Array {
  const rank = given.length;
  const inverse = fround(1 / ratings);
  const matrix = halfA ? a.map((value) => roundToHalf(fround(value * inverse))) : a;
  const b = halfA ? given.map((value) => value * inverse) : given;
  const shift = halfA ? fround(lambda) : fround(fround(lambda) * ratings);
  const times = (p: Float32Array) => p.map((value, i) => fround(shift * value + dot(matrix.subarray(i * rank, (i + 1) * rank), p)));
  const x = Float32Array.from(start);
  const first = times(x);
  const r = b.map((value, i) => value - first[i]);
  const p = Float32Array.from(r);
  let enough = 0;
  for (let step = 0; step < steps; step++) {
    const ap = times(p);
    const [rr, pap, apap] = [dot(r, r), dot(p, ap), dot(ap, ap)];
    if (step === 0) enough = Math.max(fround(rr * RESIDUAL_TOLERANCE), 1e-30);
    const alpha = rr > enough && pap > 0 ? fround(rr / pap) : 0;
    x.forEach((_, i) => (x[i] = alpha * p[i] + x[i]));
    r.forEach((_, i) => (r[i] = -alpha * ap[i] + r[i]));
    const left = Math.max(fround(fround(fround(alpha * alpha) * apap) - rr), 0);
    const beta = rr > enough ? fround(left / rr) : 0;
    p.forEach((_, i) => (p[i] = beta * p[i] + r[i]));
  }
  return x;
}

/** The loop of gpu/kernels/update/update-short.wgsl. */
function dualSolution(k: Float32Array, right: Float32Array, shift: number): Float32Array {
  const n = right.length;
  const y = new Float32Array(n);
  const e = Float32Array.from(right);
  const p = Float32Array.from(right);
  let left = dot(e, e);
  const enough = left * 1e-11;
  for (let step = 0; step < 128 && left > enough && left > 1e-35; step++) {
    const ap = p.map((value, i) => shift * value + dot(k.subarray(i * n, (i + 1) * n), p));
    const alpha = fround(left / dot(p, ap));
    y.forEach((_, i) => (y[i] = alpha * p[i] + y[i]));
    e.forEach((_, i) => (e[i] = -alpha * ap[i] + e[i]));
    const now = dot(e, e);
    const beta = fround(now / left);
    left = now;
    p.forEach((_, i) => (p[i] = beta * p[i] + e[i]));
  }
  return y;
}

function dot(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum = fround(sum + left[i] * right[i]);
  return sum;
}

function startOf({ rank, biases }: Params, buffers: Buffers, row: number): Float32Array {
  const stride = tilesOf(rank) * TILE;
  const start = new Float32Array(buffers.previous.bytes).slice(row * stride, row * stride + rank);
  if (biases) start[rank - 1] = new Float32Array(buffers.previous_bias.bytes)[row];
  return start;
}

function writeRow({ rank, biases }: Params, buffers: Buffers, row: number, x: Float32Array, half: boolean): void {
  const stride = tilesOf(rank) * TILE;
  const status = new Uint32Array(buffers.status.bytes);
  if (!x.every((value) => Number.isFinite(value))) status[0] = Math.min(status[0], row);
  const stored = new Float32Array(stride);
  stored.set(x);
  if (biases) {
    new Float32Array(buffers.bias.bytes)[row] = x[rank - 1];
    stored[rank - 1] = 1;
  }
  new Float32Array(buffers.factors.bytes).set(stored, row * stride);
  if (half) new Uint16Array(buffers.half.bytes).set(Uint16Array.from(stored, halfBits), row * stride);
}

/** Writes a slot, with some number beyond the rank, as tensor cores do. */
function writeSlot(slots: Float32Array, slot: number, rank: number, a: Float32Array, b: Float32Array): void {
  const { elements } = slotShape(rank);
  slots.fill(77, slot * elements, (slot + 1) * elements);
  eachElement(rank, (at, i, j) => (slots[slot * elements + at] = a[i * rank + j]));
  slots.set(b, (slot + 1) * elements - tilesOf(rank) * TILE);
}

function addSlot({ a, b }: Equations, slots: Float32Array, slot: number, rank: number): void {
  const { elements } = slotShape(rank);
  eachElement(rank, (at, i, j) => {
    a[i * rank + j] += slots[slot * elements + at];
    if (i >> 4 !== j >> 4) a[j * rank + i] = a[i * rank + j];
  });
  for (let i = 0; i < rank; i++) b[i] += slots[(slot + 1) * elements - tilesOf(rank) * TILE + i];
}

function slotShape(rank: number) {
  const tiles = tilesOf(rank);
  return { elements: ((tiles * (tiles + 1)) / 2) * TILE * TILE + tiles * TILE };
}

function eachElement(rank: number, visit: (at: number, i: number, j: number) => void): void {
  for (let i = 0; i < rank; i++) for (let j = 0; j < Math.min(rank, ((i >> 4) + 1) * 16); j++) visit(((((i >> 4) * ((i >> 4) + 1)) / 2 + (j >> 4)) << 8) + (i & 15) * 16 + (j & 15), i, j);
}
