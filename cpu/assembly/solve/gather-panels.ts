/** Passes over rows of θ that multiply them and copy them to panels (see panels.ts). */
import { VECTOR, indexAt, multiplyAdd, sumLanesOfFour } from '../simd';
import { addAndPack, addSumAndPack, halfWords } from './packed-panels';
import { PANEL, PANEL_STEP, addPanel, addPanelAndSum, multiplyPanel } from './panels';

/** The kind of panels that a pass stores: none, float32 (panels.ts) or 16 bits (packed-panels.ts). */
export const NO_PANELS: i32 = 0;
export const PANELS: i32 = 1;
export const PACKED_PANELS: i32 = 2;

/** Gathers `count` < 8 rows of θ into a panel; missing rows are zero. */
function gatherRows(theta: usize, size: usize, indices: usize, count: i32, panel: usize): void {
  const end = panel + (size << 3);
  const zero = f32x4.splat(0);
  for (let k = 0; k < PANEL; k++) {
    let target = panel + ((<usize>k) << 4);
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

/**
 * Gathers `count` rows of θ into a panel and computes products[k] = θ_kᵀ p. Each vector is loaded once, then
 * stored and multiplied. Even and odd columns are added in separate chains. `size` is a multiple of 32.
 */
export function gatherAndMultiplyPanel(
  theta: usize,
  size: usize,
  indices: usize,
  count: i32,
  panel: usize,
  p: usize,
  products: usize,
): void {
  if (count < PANEL) {
    gatherRows(theta, size, indices, count, panel);
    multiplyPanel(panel, size, p, products);
    return;
  }
  for (let half = 0; half < 2; half++) {
    let source0 = theta + indexAt(indices, 0) * size;
    let source1 = theta + indexAt(indices, 1) * size;
    let source2 = theta + indexAt(indices, 2) * size;
    let source3 = theta + indexAt(indices, 3) * size;
    let sum0 = f32x4.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    let sum4 = sum0;
    let sum5 = sum0;
    let sum6 = sum0;
    let sum7 = sum0;
    let target = panel;
    let factors = p;
    const end = p + size;
    for (; factors < end; factors += 2 * VECTOR) {
      let factor = v128.load(factors);
      let row = v128.load(source0);
      v128.store(target, row);
      sum0 = multiplyAdd(row, factor, sum0);
      row = v128.load(source1);
      v128.store(target, row, 16);
      sum1 = multiplyAdd(row, factor, sum1);
      row = v128.load(source2);
      v128.store(target, row, 32);
      sum2 = multiplyAdd(row, factor, sum2);
      row = v128.load(source3);
      v128.store(target, row, 48);
      sum3 = multiplyAdd(row, factor, sum3);
      factor = v128.load(factors, 16);
      row = v128.load(source0, 16);
      v128.store(target, row, 128);
      sum4 = multiplyAdd(row, factor, sum4);
      row = v128.load(source1, 16);
      v128.store(target, row, 144);
      sum5 = multiplyAdd(row, factor, sum5);
      row = v128.load(source2, 16);
      v128.store(target, row, 160);
      sum6 = multiplyAdd(row, factor, sum6);
      row = v128.load(source3, 16);
      v128.store(target, row, 176);
      sum7 = multiplyAdd(row, factor, sum7);
      source0 += 2 * VECTOR;
      source1 += 2 * VECTOR;
      source2 += 2 * VECTOR;
      source3 += 2 * VECTOR;
      target += 2 * PANEL_STEP;
    }
    v128.store(
      products,
      sumLanesOfFour(
        f32x4.add(sum0, sum4),
        f32x4.add(sum1, sum5),
        f32x4.add(sum2, sum6),
        f32x4.add(sum3, sum7),
      ),
    );
    products += 16;
    panel += 64;
    indices += 16;
  }
}

/**
 * Reads a word of every cache line of eight rows of θ, line by line for all eight rows. So their cache and
 * page-table misses overlap, and the rows are then gathered from the first-level cache. Returns a sum of the
 * words. The caller must store it, or the compiler could remove the reads.
 */
export function touchRows(theta: usize, size: usize, indices: usize): u32 {
  let sum: u32 = 0;
  let row0 = theta + indexAt(indices, 0) * size;
  let row1 = theta + indexAt(indices, 1) * size;
  let row2 = theta + indexAt(indices, 2) * size;
  let row3 = theta + indexAt(indices, 3) * size;
  let row4 = theta + indexAt(indices, 4) * size;
  let row5 = theta + indexAt(indices, 5) * size;
  let row6 = theta + indexAt(indices, 6) * size;
  let row7 = theta + indexAt(indices, 7) * size;
  const end = row0 + size;
  for (; row0 < end; row0 += 64) {
    sum += load<u32>(row0);
    sum += load<u32>(row1);
    sum += load<u32>(row2);
    sum += load<u32>(row3);
    sum += load<u32>(row4);
    sum += load<u32>(row5);
    sum += load<u32>(row6);
    sum += load<u32>(row7);
    row1 += 64;
    row2 += 64;
    row3 += 64;
    row4 += 64;
    row5 += 64;
    row6 += 64;
    row7 += 64;
  }
  return sum;
}

/**
 * factors[k] = r_k - factors[k] for `count` <= 8 ratings, and 0 for missing ones. Adds r_k factors[k], with
 * the old factors, to the four lanes at `products`.
 */
@inline
function subtractFromRatings(values: usize, count: i32, factors: usize, products: usize): void {
  if (count < PANEL) {
    // Copies the last ratings and pads them with zeros: in the list itself, the next row's ratings follow.
    const tail = products + 16;
    memory.fill(tail, 0, 32);
    memory.copy(tail, values, (<usize>count) << 2);
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
 * y += Θᵀ Θ p over `count` > 0 ratings, like multiplyPanels, while their rows of θ are gathered in the same
 * pass.
 *
 * - `kind`: the kind of panels that are stored at `panels`. If they are packed or none, `spare` has room for
 *   an unpacked panel.
 * - `values`: 0, or the ratings; then y += Σ (r_uv - θ_vᵀ p) θ_v instead, and Σ r_uv θ_vᵀ p is added to the
 *   four lanes at factors + 32.
 * - `sums`: 0, or a vector to which Σ θ_v is added as well.
 * - `factors`: 96 bytes.
 * - `far`: true if Θ is larger than the caches: then the rows of the next panel are requested before the sum
 *   over this one.
 */
export function gatherAndMultiply(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  panels: usize,
  kind: i32,
  spare: usize,
  p: usize,
  y: usize,
  factors: usize,
  sums: usize,
  far: bool,
): void {
  const half = halfWords(factors + 80);
  const step: usize = kind == PANELS ? size << 3 : kind == PACKED_PANELS ? size << 2 : 0;
  let touched: u32 = 0;
  for (; count > 0; count -= PANEL) {
    const panel = kind == PANELS ? panels : spare;
    gatherAndMultiplyPanel(theta, size, indices, count, panel, p, factors);
    if (values) {
      subtractFromRatings(values, count, factors, factors + 32);
      values += 32;
    }
    indices += 32;
    if (far && count >= 2 * PANEL) touched += touchRows(theta, size, indices);
    if (kind == PACKED_PANELS) {
      if (sums) addSumAndPack(panel, size, factors, y, sums, panels, half);
      else addAndPack(panel, size, factors, y, panels, half);
    } else if (sums) {
      addPanelAndSum(panel, size, factors, y, sums);
    } else {
      addPanel(panel, size, factors, y);
    }
    panels += step;
  }
  store<u32>(factors, touched);
}
