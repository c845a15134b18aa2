/**
 * The system of one row and its solvers, in float32 where the kernels have it: for the GPU in JavaScript
 * (emulated-gpu.ts).
 */
import { roundToHalf } from '../../../gpu/checks/support/check.ts';
import { RESIDUAL_TOLERANCE } from '../../../gpu/solve/solve-cg.ts';

const { fround } = Math;

/** The system of one row. */
export interface Equations {
  /** A: rank x rank. */
  readonly a: Float32Array;
  readonly b: Float32Array;
  /** Of the row's bias: Σ θ and Σ r. */
  readonly s: Float32Array;
  readonly t: number;
}

/** On the diagonal of A, and with biases on the diagonal element of the row's bias. */
export interface Shifts {
  readonly shift: number;
  readonly ownShift?: number;
}

/**
 * The computation of parts/register-cg: x, followed by the bias. `once`: A in float16 is
 * rounded when all is in it, as in parts/tensor-halves.
 */
export function gradients(
  { a, b: givenB, s: givenS, t: givenT }: Equations,
  start: Float32Array,
  steps: number,
  shifts: Shifts,
  ratings: number,
  halfA: boolean,
  once = false,
): Float32Array {
  const rank = givenB.length;
  const inverse = halfA ? fround(1 / ratings) : 1;
  const stored = (values: Float32Array) => (halfA ? values.map(roundToHalf) : values);
  const biases = shifts.ownShift !== undefined;
  const scaled = halfA ? a.map((value) => value * inverse) : a;
  let matrix = once && biases ? scaled : stored(scaled);
  const shift = fround(shifts.shift * inverse);
  const weight = fround((ratings + (shifts.ownShift ?? 0)) * inverse);
  const [b, s] = [
    givenB.map((value) => value * inverse),
    givenS.map((value) => (biases ? value * inverse : 0)),
  ];
  const t = biases ? fround(givenT * inverse) : 0;
  if (biases) {
    matrix = stored(
      matrix.map((value, at) => value - fround(fround(s[Math.floor(at / rank)] / weight) * s[at % rank])),
    );
    b.forEach((value, i) => (b[i] = value - fround(t / weight) * s[i]));
  }
  const times = (p: Float32Array) =>
    p.map((value, i) => fround(shift * value + dot(matrix.subarray(i * rank, (i + 1) * rank), p)));
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
  return Float32Array.from([...x, (t - dot(s, x)) / weight]);
}

/** xᵀA x - 2 bᵀx of a row; with a bias, it is the last element of x. */
export function objectiveOf(
  { a, b, s, t }: Equations,
  x: Float32Array,
  { shift, ownShift }: Shifts,
  ratings: number,
): number {
  const rank = b.length;
  const [factors, bias] = [x.subarray(0, rank), ownShift === undefined ? 0 : x[rank]];
  let sum = (ratings + (ownShift ?? 0)) * bias * bias + 2 * bias * (dot(s, factors) - t);
  for (let i = 0; i < rank; i++)
    sum += x[i] * (dot(a.subarray(i * rank, (i + 1) * rank), factors) + shift * x[i] - 2 * b[i]);
  return sum;
}

/** The loop of gpu/update/update-short.wgsl. */
export function dualSolution(k: Float32Array, right: Float32Array, shift: number): Float32Array {
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

export function dot(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum = fround(sum + left[i] * right[i]);
  return sum;
}

/** The value rounded to float32 towards zero. */
export function cutOff(value: number): number {
  const rounded = fround(value);
  if (Math.abs(rounded) <= Math.abs(value) || !Number.isFinite(value)) return rounded;
  const bits = new Uint32Array(Float32Array.of(rounded).buffer);
  bits[0]--;
  return new Float32Array(bits.buffer)[0];
}
