/**
 * Matrix-free products with a row's ratings: y += Θ_uᵀ (Θ_u p), never forming A (cuMF_ALS, section IV, applied per row).
 *
 * The row's θ are gathered once into panels of eight ratings, four columns of all eight side by side, so that the passes
 * that follow read memory from front to back and address everything at constant offsets:
 *
 *     panel:  [column / 4][rating 0..7][column % 4]      8 * size bytes
 *     rank 8: θ0[0..3] θ1[0..3] .. θ7[0..3]  θ0[4..7] .. θ7[4..7]
 *
 * One pass forms the eight products t_k = θ_kᵀ p of a panel and adds Σ t_k θ_k to y while it is still in the first-level
 * cache. The last panel is filled with zero rows, which add nothing.
 */
import { VECTOR, indexAt, multiplyAdd, sumLanesOfFour } from '../simd';

/** Ratings of a panel. */
export const PANEL: i32 = 8;
const PANEL_STEP: usize = 8 * 16;

/** Gathers `count` <= 8 rows of θ into a panel; missing rows are zero. */
export function gatherPanel(theta: usize, size: usize, indices: usize, count: i32, panel: usize): void {
  const end = panel + (size << 3);
  if (count == PANEL) {
    // Four rows at a time keep all addresses in registers.
    for (let half = 0; half < PANEL; half += 4) {
      let source0 = theta + indexAt(indices, half) * size;
      let source1 = theta + indexAt(indices, half + 1) * size;
      let source2 = theta + indexAt(indices, half + 2) * size;
      let source3 = theta + indexAt(indices, half + 3) * size;
      for (let target = panel + (<usize>half << 4); target < end; target += PANEL_STEP) {
        v128.store(target, v128.load(source0));
        v128.store(target, v128.load(source1), 16);
        v128.store(target, v128.load(source2), 32);
        v128.store(target, v128.load(source3), 48);
        source0 += VECTOR;
        source1 += VECTOR;
        source2 += VECTOR;
        source3 += VECTOR;
      }
    }
    return;
  }
  const zero = f32x4.splat(0);
  for (let k = 0; k < PANEL; k++) {
    let target = panel + (<usize>k << 4);
    if (k < count) {
      let source = theta + indexAt(indices, k) * size;
      for (; target < end; target += PANEL_STEP) {
        v128.store(target, v128.load(source));
        source += VECTOR;
      }
    } else {
      for (; target < end; target += PANEL_STEP) v128.store(target, zero);
    }
  }
}

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
    // Two chains of four, so that the additions of one column do not wait for each other.
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

/** The same, and sums += Σ_k θ_k. */
function addPanelAndSum(panel: usize, size: usize, factors: usize, y: usize, sums: usize): void {
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

/** factors[k] = r_k - factors[k] for `count` <= 8 ratings, 0 for the missing ones; the 4 lanes at `products` += r_k factors[k]. */
@inline
function subtractFromRatings(values: usize, count: i32, factors: usize, products: usize): void {
  if (count < PANEL) {
    // A copy beside the factors, padded with zeros, since the next row's ratings follow these.
    const tail = products + 16;
    memory.fill(tail, 0, 32);
    memory.copy(tail, values, <usize>count << 2);
    values = tail;
  }
  const ratings0 = v128.load(values);
  const ratings1 = v128.load(values, 16);
  const factors0 = v128.load(factors);
  const factors1 = v128.load(factors, 16);
  v128.store(products, multiplyAdd(ratings1, factors1, multiplyAdd(ratings0, factors0, v128.load(products))));
  v128.store(factors, f32x4.sub(ratings0, factors0));
  v128.store(factors, f32x4.sub(ratings1, factors1), 16);
}

/**
 * y += Θᵀ Θ p over the `count` > 0 ratings whose panels lie at `panels`, from the last panel to the first when `backward`:
 * alternating passes find in the cache the panels that the last pass read at its end. `factors`: 64 bytes.
 * The products of the next panel come before the sum over this one, which hides their latency.
 */
export function multiplyPanels(panels: usize, size: usize, count: i32, backward: bool, p: usize, y: usize, factors: usize): void {
  let step = <isize>(size << 3);
  let left = (count - 1) / PANEL;
  if (backward) {
    panels += <usize>left * (size << 3);
    step = -step;
  }
  let other = factors + 32;
  multiplyPanel(panels, size, p, factors);
  for (; left > 0; left--) {
    multiplyPanel(panels + step, size, p, other);
    addPanel(panels, size, factors, y);
    panels += step;
    const swap = factors;
    factors = other;
    other = swap;
  }
  addPanel(panels, size, factors, y);
}

/**
 * The same for `count` > 0 ratings that are gathered on the way, and whose panels stay at `panels` when `keep` is set, or
 * else take turns in the first two. With `values`, y += Σ (r_uv - θ_vᵀ p) θ_v instead, and the four lanes at factors + 32
 * get Σ r_uv θ_vᵀ p added. With `sums`, sums += Σ θ_v as well. `factors`: 96 bytes.
 * The next panel is requested before the sum over this one, which runs while its rows arrive.
 */
export function gatherAndMultiply(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  panels: usize,
  keep: bool,
  p: usize,
  y: usize,
  factors: usize,
  sums: usize,
): void {
  let step = <isize>(size << 3);
  let panel = panels;
  gatherPanel(theta, size, indices, min(count, PANEL), panel);
  for (;;) {
    multiplyPanel(panel, size, p, factors);
    if (values) {
      subtractFromRatings(values, count, factors, factors + 32);
      values += 32;
    }
    count -= PANEL;
    if (count <= 0) break;
    indices += 32;
    gatherPanel(theta, size, indices, min(count, PANEL), panel + step);
    if (sums) addPanelAndSum(panel, size, factors, y, sums);
    else addPanel(panel, size, factors, y);
    panel += step;
    if (!keep) step = -step;
  }
  if (sums) addPanelAndSum(panel, size, factors, y, sums);
  else addPanel(panel, size, factors, y);
}
