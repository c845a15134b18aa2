/**
 * Matrix-free products with a row's ratings: y += Θ_uᵀ (Θ_u p) without forming A = Θ_uᵀ Θ_u (cuMF_ALS,
 * section IV, applied to each row). Θ_u are the θ of the row's ratings.
 *
 * They are gathered once into panels of eight ratings, with four columns of all eight adjacent, so that later
 * passes read memory sequentially and address everything at constant offsets:
 *
 *     panel:  [column / 4][rating 0..7][column % 4]      8 * size bytes
 *     rank 8: θ0[0..3] θ1[0..3] .. θ7[0..3]  θ0[4..7] .. θ7[4..7]
 *
 * A pass computes the eight products t_k = θ_kᵀ p of a panel, and adds Σ t_k θ_k to y while the panel is
 * still in the first-level cache. The last panel is padded with zero rows, which add nothing.
 */
import { VECTOR, multiplyAdd, sumLanesOfFour } from '../simd';

export const PANEL: i32 = 8;
/** Bytes of four columns of a panel. */
export const PANEL_STEP: usize = 8 * 16;

/** products[k] = θ_kᵀ p for the panel's eight ratings. */
export function multiplyPanel(panel: usize, size: usize, p: usize, products: usize): void {
  let sum0 = f32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  let sum4 = sum0;
  let sum5 = sum0;
  let sum6 = sum0;
  let sum7 = sum0;
  const end = panel + (size << 3);
  for (; panel < end; panel += PANEL_STEP) {
    const factor = v128.load(p);
    sum0 = multiplyAdd(v128.load(panel), factor, sum0);
    sum1 = multiplyAdd(v128.load(panel, 16), factor, sum1);
    sum2 = multiplyAdd(v128.load(panel, 32), factor, sum2);
    sum3 = multiplyAdd(v128.load(panel, 48), factor, sum3);
    sum4 = multiplyAdd(v128.load(panel, 64), factor, sum4);
    sum5 = multiplyAdd(v128.load(panel, 80), factor, sum5);
    sum6 = multiplyAdd(v128.load(panel, 96), factor, sum6);
    sum7 = multiplyAdd(v128.load(panel, 112), factor, sum7);
    p += VECTOR;
  }
  v128.store(products, sumLanesOfFour(sum0, sum1, sum2, sum3));
  v128.store(products, sumLanesOfFour(sum4, sum5, sum6, sum7), 16);
}

/** The common code of addPanel and addPanelAndSum, with `summed` as a compile-time constant. */
@inline
function addRows(panel: usize, size: usize, factors: usize, y: usize, summed: bool, sums: usize): void {
  const factor0 = v128.load32_splat(factors);
  const factor1 = v128.load32_splat(factors, 4);
  const factor2 = v128.load32_splat(factors, 8);
  const factor3 = v128.load32_splat(factors, 12);
  const factor4 = v128.load32_splat(factors, 16);
  const factor5 = v128.load32_splat(factors, 20);
  const factor6 = v128.load32_splat(factors, 24);
  const factor7 = v128.load32_splat(factors, 28);
  const end = panel + (size << 3);
  for (; panel < end; panel += PANEL_STEP) {
    // Two chains of four additions, so that the additions to one column do not all wait for each other.
    let row = v128.load(panel);
    let first = multiplyAdd(row, factor0, v128.load(y));
    let firstSum = summed ? f32x4.add(row, v128.load(sums)) : row;
    row = v128.load(panel, 64);
    let second = f32x4.mul(row, factor4);
    let secondSum = row;
    row = v128.load(panel, 16);
    first = multiplyAdd(row, factor1, first);
    if (summed) firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 80);
    second = multiplyAdd(row, factor5, second);
    if (summed) secondSum = f32x4.add(secondSum, row);
    row = v128.load(panel, 32);
    first = multiplyAdd(row, factor2, first);
    if (summed) firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 96);
    second = multiplyAdd(row, factor6, second);
    if (summed) secondSum = f32x4.add(secondSum, row);
    row = v128.load(panel, 48);
    first = multiplyAdd(row, factor3, first);
    if (summed) firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 112);
    second = multiplyAdd(row, factor7, second);
    if (summed) secondSum = f32x4.add(secondSum, row);
    v128.store(y, f32x4.add(first, second));
    y += VECTOR;
    if (summed) {
      v128.store(sums, f32x4.add(firstSum, secondSum));
      sums += VECTOR;
    }
  }
}

/** y += Σ_k factors[k] θ_k over the panel's eight ratings. */
export function addPanel(panel: usize, size: usize, factors: usize, y: usize): void {
  addRows(panel, size, factors, y, false, 0);
}

/** Like addPanel, and also sums += Σ_k θ_k. */
export function addPanelAndSum(panel: usize, size: usize, factors: usize, y: usize, sums: usize): void {
  addRows(panel, size, factors, y, true, sums);
}

/**
 * Panels of a long row's ratings with 16 bits for each element. Every step of conjugate gradients reads the
 * panels again, from the third-level cache or from memory, and packed ones have half the bytes of float32
 * panels (panels.ts). The residual of the row's first x is summed over the exact θ, so repeated solves
 * converge to the float32 solution. The rounding, at most 2^-8 of an element, is random from rating to rating
 * and averages out over thousands of them.
 *
 *     packed panel:  [column / 4][rating 0..3][column % 4]      4 * size bytes
 *
 * A word holds two elements, each the upper half of a float32: the element of rating k in the word's upper
 * half, and the same column of rating k + 4 in its lower half. To read rating k's element, the whole word is
 * used as a float32. Its lower half is then part of the rounding error: packing has chosen the upper half so
 * that the word as a whole is nearest to the element. So one shift unpacks two elements.
 */

/** Bytes of four columns of a packed panel. */
const STEP: usize = PANEL_STEP / 2;

/**
 * Packs `upper` and `lower` into words, both rounded to nearest. `half`: words of 0x8000.
 *
 * The lower half is subtracted from the upper element's bits, so that the word as a whole is nearest to that
 * element. If the element is below 2^-133, the difference may pass 0 and change its sign, and its bits would be
 * NaN. Then the upper half becomes 0. So two zeros give a word of 0, and padding adds nothing.
 *
 * Elements whose size rounds to 2^128 become infinite or NaN. They are in no solvable row: their squares
 * overflow float32.
 */
@inline
function packed(upper: v128, lower: v128, half: v128): v128 {
  const low = i32x4.shr_u(i32x4.add(lower, half), 16);
  const high = i32x4.add(i32x4.sub(upper, low), half);
  const wrapped = i32x4.shr_s(v128.xor(high, upper), 31);
  return v128.shuffle<i16>(low, v128.andnot(high, wrapped), 0, 9, 2, 11, 4, 13, 6, 15);
}

/**
 * Returns a vector of four words 0x8000, loaded from memory at `spare` (4 bytes). The compiler would build a
 * constant vector again at each use.
 */
@inline
export function halfWords(spare: usize): v128 {
  store<u32>(spare, 0x8000);
  return v128.load32_splat(spare);
}

/** The common code of addAndPack and addSumAndPack, each with `summed` as a compile-time constant. */
@inline
function addPacking(
  panel: usize,
  size: usize,
  factors: usize,
  y: usize,
  summed: bool,
  sums: usize,
  target: usize,
  half: v128,
): void {
  const factor0 = v128.load32_splat(factors);
  const factor1 = v128.load32_splat(factors, 4);
  const factor2 = v128.load32_splat(factors, 8);
  const factor3 = v128.load32_splat(factors, 12);
  const factor4 = v128.load32_splat(factors, 16);
  const factor5 = v128.load32_splat(factors, 20);
  const factor6 = v128.load32_splat(factors, 24);
  const factor7 = v128.load32_splat(factors, 28);
  const end = panel + (size << 3);
  for (; panel < end; panel += PANEL_STEP) {
    let upper = v128.load(panel);
    let lower = v128.load(panel, 64);
    let first = multiplyAdd(upper, factor0, v128.load(y));
    let second = f32x4.mul(lower, factor4);
    let sum = summed ? f32x4.add(f32x4.add(upper, lower), v128.load(sums)) : half;
    v128.store(target, packed(upper, lower, half));
    upper = v128.load(panel, 16);
    lower = v128.load(panel, 80);
    first = multiplyAdd(upper, factor1, first);
    second = multiplyAdd(lower, factor5, second);
    if (summed) sum = f32x4.add(f32x4.add(upper, lower), sum);
    v128.store(target, packed(upper, lower, half), 16);
    upper = v128.load(panel, 32);
    lower = v128.load(panel, 96);
    first = multiplyAdd(upper, factor2, first);
    second = multiplyAdd(lower, factor6, second);
    if (summed) sum = f32x4.add(f32x4.add(upper, lower), sum);
    v128.store(target, packed(upper, lower, half), 32);
    upper = v128.load(panel, 48);
    lower = v128.load(panel, 112);
    first = multiplyAdd(upper, factor3, first);
    second = multiplyAdd(lower, factor7, second);
    if (summed) sum = f32x4.add(f32x4.add(upper, lower), sum);
    v128.store(target, packed(upper, lower, half), 48);
    v128.store(y, f32x4.add(first, second));
    y += VECTOR;
    if (summed) {
      v128.store(sums, sum);
      sums += VECTOR;
    }
    target += STEP;
  }
}

/**
 * y += Σ_k factors[k] θ_k over the eight ratings of a float32 panel (panels.ts). Also packs the panel to
 * `target`.
 */
export function addAndPack(
  panel: usize,
  size: usize,
  factors: usize,
  y: usize,
  target: usize,
  half: v128,
): void {
  addPacking(panel, size, factors, y, false, 0, target, half);
}

/** Like addAndPack, and also sums += Σ_k θ_k. */
export function addSumAndPack(
  panel: usize,
  size: usize,
  factors: usize,
  y: usize,
  sums: usize,
  target: usize,
  half: v128,
): void {
  addPacking(panel, size, factors, y, true, sums, target, half);
}

/** products[k] = θ_kᵀ p for a packed panel's eight ratings. */
export function multiplyPackedPanel(panel: usize, size: usize, p: usize, products: usize): void {
  let sum0 = f32x4.splat(0);
  let sum1 = sum0;
  let sum2 = sum0;
  let sum3 = sum0;
  let sum4 = sum0;
  let sum5 = sum0;
  let sum6 = sum0;
  let sum7 = sum0;
  const end = panel + (size << 2);
  for (; panel < end; panel += 2 * STEP) {
    let factor = v128.load(p);
    let words = v128.load(panel);
    sum0 = multiplyAdd(words, factor, sum0);
    sum4 = multiplyAdd(i32x4.shl(words, 16), factor, sum4);
    words = v128.load(panel, 16);
    sum1 = multiplyAdd(words, factor, sum1);
    sum5 = multiplyAdd(i32x4.shl(words, 16), factor, sum5);
    words = v128.load(panel, 32);
    sum2 = multiplyAdd(words, factor, sum2);
    sum6 = multiplyAdd(i32x4.shl(words, 16), factor, sum6);
    words = v128.load(panel, 48);
    sum3 = multiplyAdd(words, factor, sum3);
    sum7 = multiplyAdd(i32x4.shl(words, 16), factor, sum7);
    factor = v128.load(p, 16);
    words = v128.load(panel, 64);
    sum0 = multiplyAdd(words, factor, sum0);
    sum4 = multiplyAdd(i32x4.shl(words, 16), factor, sum4);
    words = v128.load(panel, 80);
    sum1 = multiplyAdd(words, factor, sum1);
    sum5 = multiplyAdd(i32x4.shl(words, 16), factor, sum5);
    words = v128.load(panel, 96);
    sum2 = multiplyAdd(words, factor, sum2);
    sum6 = multiplyAdd(i32x4.shl(words, 16), factor, sum6);
    words = v128.load(panel, 112);
    sum3 = multiplyAdd(words, factor, sum3);
    sum7 = multiplyAdd(i32x4.shl(words, 16), factor, sum7);
    p += 2 * VECTOR;
  }
  v128.store(products, sumLanesOfFour(sum0, sum1, sum2, sum3));
  v128.store(products, sumLanesOfFour(sum4, sum5, sum6, sum7), 16);
}

/** y += Σ_k factors[k] θ_k over a packed panel's eight ratings. */
export function addPackedPanel(panel: usize, size: usize, factors: usize, y: usize): void {
  const factor0 = v128.load32_splat(factors);
  const factor1 = v128.load32_splat(factors, 4);
  const factor2 = v128.load32_splat(factors, 8);
  const factor3 = v128.load32_splat(factors, 12);
  const factor4 = v128.load32_splat(factors, 16);
  const factor5 = v128.load32_splat(factors, 20);
  const factor6 = v128.load32_splat(factors, 24);
  const factor7 = v128.load32_splat(factors, 28);
  const end = panel + (size << 2);
  for (; panel < end; panel += STEP) {
    let words = v128.load(panel);
    let first = multiplyAdd(words, factor0, v128.load(y));
    let second = f32x4.mul(i32x4.shl(words, 16), factor4);
    words = v128.load(panel, 16);
    first = multiplyAdd(words, factor1, first);
    second = multiplyAdd(i32x4.shl(words, 16), factor5, second);
    words = v128.load(panel, 32);
    first = multiplyAdd(words, factor2, first);
    second = multiplyAdd(i32x4.shl(words, 16), factor6, second);
    words = v128.load(panel, 48);
    first = multiplyAdd(words, factor3, first);
    second = multiplyAdd(i32x4.shl(words, 16), factor7, second);
    v128.store(y, f32x4.add(first, second));
    y += VECTOR;
  }
}
