/**
 * The ridge regression of factors on attributes, for COLUMNS columns of the factors at a time. With F, the
 * attributes in compressed rows (feature 0 is the constant 1 of every row), D, the rows' weights, and X, their
 * factors, the coefficients A solve
 *
 *     (FᵀD F + μ I) A = FᵀD X
 *
 * by conjugate gradients, each column by itself, preconditioned by the diagonal M of the matrix:
 *
 *     R = FᵀD (X - F A) - μ A;  P = M⁻¹R;  ρ = RᵀM⁻¹R
 *     repeat:   Q = (FᵀD F + μ I) P;  α = ρ / PᵀQ;  A += α P;  R -= α Q;  ρ' = RᵀM⁻¹R;  P = M⁻¹R + (ρ'/ρ) P
 *
 * A row is multiplied and transposed at once: its product with P is in registers when it is added to Q. So one
 * pass over F gives Q, and no transpose of F is stored.
 */
import { VECTOR, WORD, indexAt, multiplyAdd, multiplySubtract } from './simd';

/** Bytes of COLUMNS = 8 columns. */
const COLUMNS_BYTES: usize = 2 * VECTOR;

/** Passes of passAttributes. */
const RESIDUAL: i32 = 0;
const PRODUCT: i32 = 1;

/** Eight columns of a ridge regression. */
@unmanaged
export class Ridge {
  /** μ */
  ridge: f32;
  /** A: the eight columns of feature 0, and the bytes between features. */
  coefficients: usize;
  coefficientBytes: usize;
  /** R, P and Q: features x 8. */
  residual: usize;
  direction: usize;
  product: usize;
  /** Float32[features]: first M - μ I, then M⁻¹. */
  inverse: usize;
  /** Float32[8]: α or ρ'/ρ of each column; Float64[8]: ρ or PᵀQ; Float64[8]: AᵀM A of the first A. */
  factors: usize;
  sums: usize;
  sizes: usize;
}

/**
 * One pass over rows of F; `weights`: Float32[rows], D. Offsets and indices are as in updateRows.
 *
 *     pass 0 (residual)     R += FᵀD (X - F A)
 *     pass 1 (product)      Q += FᵀD F P
 *     pass 2 (prediction)   X = F A
 *
 * `rowFactors`: the eight columns of the first row of X, and the bytes between rows.
 */
export function passAttributes(
  problem: usize,
  pass: i32,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  weights: usize,
  rowFactors: usize,
  rowBytes: usize,
): void {
  const ridge = changetype<Ridge>(problem);
  const source = pass == PRODUCT ? ridge.direction : ridge.coefficients;
  const sourceBytes = pass == PRODUCT ? COLUMNS_BYTES : ridge.coefficientBytes;
  const target = pass == PRODUCT ? ridge.product : ridge.residual;
  const origin = load<i32>(offsets);
  const constant0 = v128.load(source);
  const constant1 = v128.load(source, 16);
  // Sums of the constant feature, which every row has.
  let all0 = f32x4.splat(0);
  let all1 = all0;
  for (let row = 0; row < rows; row++) {
    const first = load<i32>(offsets) - origin + 1;
    const end = load<i32>(offsets, 4) - origin;
    offsets += WORD;
    const weight = pass <= PRODUCT ? load<f32>(weights + ((<usize>row) << 2)) : 0;
    const at = rowFactors + <usize>row * rowBytes;
    if (pass <= PRODUCT && weight == 0) continue;
    let even0 = constant0;
    let even1 = constant1;
    let odd0 = f32x4.splat(0);
    let odd1 = odd0;
    let k = first;
    for (; k + 2 <= end; k += 2) {
      const left = source + indexAt(indices, k) * sourceBytes;
      const right = source + indexAt(indices, k + 1) * sourceBytes;
      const leftValue = v128.load32_splat(values + ((<usize>k) << 2));
      const rightValue = v128.load32_splat(values + ((<usize>k) << 2), 4);
      even0 = multiplyAdd(leftValue, v128.load(left), even0);
      even1 = multiplyAdd(leftValue, v128.load(left, 16), even1);
      odd0 = multiplyAdd(rightValue, v128.load(right), odd0);
      odd1 = multiplyAdd(rightValue, v128.load(right, 16), odd1);
    }
    if (k < end) {
      const last = source + indexAt(indices, k) * sourceBytes;
      const value = v128.load32_splat(values + ((<usize>k) << 2));
      even0 = multiplyAdd(value, v128.load(last), even0);
      even1 = multiplyAdd(value, v128.load(last, 16), even1);
    }
    let sum0 = f32x4.add(even0, odd0);
    let sum1 = f32x4.add(even1, odd1);
    if (pass > PRODUCT) {
      v128.store(at, sum0);
      v128.store(at, sum1, 16);
      continue;
    }
    if (pass == RESIDUAL) {
      sum0 = f32x4.sub(v128.load(at), sum0);
      sum1 = f32x4.sub(v128.load(at, 16), sum1);
    }
    const scale = f32x4.splat(weight);
    sum0 = f32x4.mul(scale, sum0);
    sum1 = f32x4.mul(scale, sum1);
    all0 = f32x4.add(all0, sum0);
    all1 = f32x4.add(all1, sum1);
    for (k = first; k < end; k++) {
      const own = target + indexAt(indices, k) * COLUMNS_BYTES;
      const value = v128.load32_splat(values + ((<usize>k) << 2));
      v128.store(own, multiplyAdd(value, sum0, v128.load(own)));
      v128.store(own, multiplyAdd(value, sum1, v128.load(own, 16)), 16);
    }
  }
  if (pass > PRODUCT) return;
  v128.store(target, f32x4.add(v128.load(target), all0));
  v128.store(target, f32x4.add(v128.load(target, 16), all1), 16);
}

/** Adds the diagonal of FᵀD F of some rows to `inverse`. */
export function addAttributeSquares(
  problem: usize,
  offsets: usize,
  indices: usize,
  values: usize,
  rows: i32,
  weights: usize,
): void {
  const inverse = changetype<Ridge>(problem).inverse;
  const origin = load<i32>(offsets);
  for (let row = 0; row < rows; row++) {
    const end = load<i32>(offsets, 4) - origin;
    const weight = load<f32>(weights + ((<usize>row) << 2));
    for (let k = load<i32>(offsets) - origin; k < end; k++) {
      const own = inverse + (indexAt(indices, k) << 2);
      const value = load<f32>(values + ((<usize>k) << 2));
      store<f32>(own, load<f32>(own) + weight * value * value);
    }
    offsets += WORD;
  }
}

/** sums[0..8) += a b, in float64. */
@inline
function addProducts(sums: usize, a0: v128, a1: v128, b0: v128, b1: v128): void {
  addFour(sums, f32x4.mul(a0, b0));
  addFour(sums + 32, f32x4.mul(a1, b1));
}

@inline
function addFour(sums: usize, four: v128): void {
  v128.store(sums, f64x2.add(v128.load(sums), f64x2.promote_low_f32x4(four)));
  const upper = v128.shuffle<f32>(four, four, 2, 3, 2, 3);
  v128.store(sums, f64x2.add(v128.load(sums, 16), f64x2.promote_low_f32x4(upper)), 16);
}

/** After the passes for R and M, for the features [from, to): R -= μ A, P = M⁻¹R, sums += RᵀM⁻¹R, sizes += AᵀM A. */
export function beginRidge(problem: usize, from: i32, to: i32): void {
  const ridge = changetype<Ridge>(problem);
  const shift = f32x4.splat(ridge.ridge);
  for (let feature = <usize>from; feature < <usize>to; feature++) {
    const at = feature * COLUMNS_BYTES;
    const own = ridge.coefficients + feature * ridge.coefficientBytes;
    const residual = ridge.residual + at;
    const inverse = ridge.inverse + (feature << 2);
    const diagonal = load<f32>(inverse) + ridge.ridge;
    // A feature that no weighted row has, without a ridge: its coefficients stay.
    const inverted: f32 = diagonal > 0 ? 1 / diagonal : 0;
    store<f32>(inverse, inverted);
    const a0 = v128.load(own);
    const a1 = v128.load(own, 16);
    const scale = f32x4.splat(diagonal);
    addProducts(ridge.sizes, a0, a1, f32x4.mul(scale, a0), f32x4.mul(scale, a1));
    const r0 = multiplySubtract(shift, a0, v128.load(residual));
    const r1 = multiplySubtract(shift, a1, v128.load(residual, 16));
    v128.store(residual, r0);
    v128.store(residual, r1, 16);
    const z0 = f32x4.mul(f32x4.splat(inverted), r0);
    const z1 = f32x4.mul(f32x4.splat(inverted), r1);
    v128.store(ridge.direction + at, z0);
    v128.store(ridge.direction + at, z1, 16);
    addProducts(ridge.sums, r0, r1, z0, z1);
  }
}

/** After the pass for Q: Q += μ P, sums += PᵀQ. */
export function endProduct(problem: usize, from: i32, to: i32): void {
  const ridge = changetype<Ridge>(problem);
  const shift = f32x4.splat(ridge.ridge);
  for (let at = <usize>from * COLUMNS_BYTES; at < <usize>to * COLUMNS_BYTES; at += COLUMNS_BYTES) {
    const p0 = v128.load(ridge.direction + at);
    const p1 = v128.load(ridge.direction + at, 16);
    const q0 = multiplyAdd(shift, p0, v128.load(ridge.product + at));
    const q1 = multiplyAdd(shift, p1, v128.load(ridge.product + at, 16));
    v128.store(ridge.product + at, q0);
    v128.store(ridge.product + at, q1, 16);
    addProducts(ridge.sums, p0, p1, q0, q1);
  }
}

/** A += α P, R -= α Q, sums += RᵀM⁻¹R. */
export function stepRidge(problem: usize, from: i32, to: i32): void {
  const ridge = changetype<Ridge>(problem);
  const alpha0 = v128.load(ridge.factors);
  const alpha1 = v128.load(ridge.factors, 16);
  for (let feature = <usize>from; feature < <usize>to; feature++) {
    const at = feature * COLUMNS_BYTES;
    const own = ridge.coefficients + feature * ridge.coefficientBytes;
    const direction = ridge.direction + at;
    const residual = ridge.residual + at;
    const product = ridge.product + at;
    v128.store(own, multiplyAdd(alpha0, v128.load(direction), v128.load(own)));
    v128.store(own, multiplyAdd(alpha1, v128.load(direction, 16), v128.load(own, 16)), 16);
    const r0 = multiplySubtract(alpha0, v128.load(product), v128.load(residual));
    const r1 = multiplySubtract(alpha1, v128.load(product, 16), v128.load(residual, 16));
    v128.store(residual, r0);
    v128.store(residual, r1, 16);
    const inverse = v128.load32_splat(ridge.inverse + (feature << 2));
    addProducts(ridge.sums, r0, r1, f32x4.mul(inverse, r0), f32x4.mul(inverse, r1));
  }
}

/** P = M⁻¹R + (ρ'/ρ) P, Q = 0. */
export function turnRidge(problem: usize, from: i32, to: i32): void {
  const ridge = changetype<Ridge>(problem);
  const beta0 = v128.load(ridge.factors);
  const beta1 = v128.load(ridge.factors, 16);
  const zero = f32x4.splat(0);
  for (let feature = <usize>from; feature < <usize>to; feature++) {
    const at = feature * COLUMNS_BYTES;
    const direction = ridge.direction + at;
    const inverse = v128.load32_splat(ridge.inverse + (feature << 2));
    const z0 = f32x4.mul(inverse, v128.load(ridge.residual + at));
    const z1 = f32x4.mul(inverse, v128.load(ridge.residual + at, 16));
    v128.store(direction, multiplyAdd(beta0, v128.load(direction), z0));
    v128.store(direction, multiplyAdd(beta1, v128.load(direction, 16), z1), 16);
    v128.store(ridge.product + at, zero);
    v128.store(ridge.product + at, zero, 16);
  }
}
