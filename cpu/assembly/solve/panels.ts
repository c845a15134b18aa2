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

/** Ratings of a panel. */
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

/** y += Σ_k factors[k] θ_k over the panel's eight ratings. */
export function addPanel(panel: usize, size: usize, factors: usize, y: usize): void {
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
    let first = multiplyAdd(v128.load(panel), factor0, v128.load(y));
    let second = f32x4.mul(v128.load(panel, 64), factor4);
    first = multiplyAdd(v128.load(panel, 16), factor1, first);
    second = multiplyAdd(v128.load(panel, 80), factor5, second);
    first = multiplyAdd(v128.load(panel, 32), factor2, first);
    second = multiplyAdd(v128.load(panel, 96), factor6, second);
    first = multiplyAdd(v128.load(panel, 48), factor3, first);
    second = multiplyAdd(v128.load(panel, 112), factor7, second);
    v128.store(y, f32x4.add(first, second));
    y += VECTOR;
  }
}

/** Like addPanel, and also sums += Σ_k θ_k. */
export function addPanelAndSum(panel: usize, size: usize, factors: usize, y: usize, sums: usize): void {
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
    let row = v128.load(panel);
    let first = multiplyAdd(row, factor0, v128.load(y));
    let firstSum = f32x4.add(row, v128.load(sums));
    row = v128.load(panel, 64);
    let second = f32x4.mul(row, factor4);
    let secondSum = row;
    row = v128.load(panel, 16);
    first = multiplyAdd(row, factor1, first);
    firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 80);
    second = multiplyAdd(row, factor5, second);
    secondSum = f32x4.add(secondSum, row);
    row = v128.load(panel, 32);
    first = multiplyAdd(row, factor2, first);
    firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 96);
    second = multiplyAdd(row, factor6, second);
    secondSum = f32x4.add(secondSum, row);
    row = v128.load(panel, 48);
    first = multiplyAdd(row, factor3, first);
    firstSum = f32x4.add(firstSum, row);
    row = v128.load(panel, 112);
    second = multiplyAdd(row, factor7, second);
    secondSum = f32x4.add(secondSum, row);
    v128.store(y, f32x4.add(first, second));
    v128.store(sums, f32x4.add(firstSum, secondSum));
    y += VECTOR;
    sums += VECTOR;
  }
}
