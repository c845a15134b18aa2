/**
 * Passes of conjugate gradients over a row's ratings: they gather rows of θ into panels
 * (panels.ts) and multiply them. Weights and targets are followed by eight zeros, for the last panel's missing
 * ratings; without weights each rating weighs 1.
 */
import { VECTOR, indexAt, multiplyAdd, sumLanesOfFour } from '../simd';
import {
  PANEL,
  PANEL_STEP,
  addAndPack,
  addPackedPanel,
  addPanel,
  addPanelAndSum,
  addSumAndPack,
  halfWords,
  multiplyPackedPanel,
  multiplyPanel,
} from './panels';
import { RowProblem } from './problem';

/** Bytes of the values or weights of a panel. */
const STEP: usize = 32;

/**
 * Replaces the weights and targets after the row's last by zeros: its last panel reads them, and multiplied by the
 * panel's missing rows, which are 0, a NaN of the next row would make this one NaN. showNext puts them back.
 */
export function hideNext(row: RowProblem): void {
  const bytes = (<usize>row.count) << 2;
  const weights = row.weights + bytes;
  const targets = row.values + bytes;
  row.nextWeights = v128.load(weights);
  row.moreWeights = v128.load(weights, 16);
  row.nextTargets = v128.load(targets);
  row.moreTargets = v128.load(targets, 16);
  const zero = f32x4.splat(0);
  v128.store(weights, zero);
  v128.store(weights, zero, 16);
  v128.store(targets, zero);
  v128.store(targets, zero, 16);
}

/** Puts the weights and targets back that hideNext has replaced. */
export function showNext(row: RowProblem): void {
  const bytes = (<usize>row.count) << 2;
  const weights = row.weights + bytes;
  const targets = row.values + bytes;
  v128.store(weights, row.nextWeights);
  v128.store(weights, row.moreWeights, 16);
  v128.store(targets, row.nextTargets);
  v128.store(targets, row.moreTargets, 16);
}

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
function gatherAndMultiplyPanel(
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
function touchRows(theta: usize, size: usize, indices: usize): u32 {
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
 * the old factors, to the four lanes at `lanes`.
 */
@inline
function subtractFromRatings(values: usize, count: i32, factors: usize, lanes: usize, spare: usize): void {
  if (count < PANEL) {
    // Copies the last ratings and pads them with zeros: in the list itself, the next row's ratings follow.
    memory.fill(spare, 0, 32);
    memory.copy(spare, values, (<usize>count) << 2);
    values = spare;
  }
  const ratings0 = v128.load(values);
  const ratings1 = v128.load(values, 16);
  const factors0 = v128.load(factors);
  const factors1 = v128.load(factors, 16);
  v128.store(lanes, multiplyAdd(ratings1, factors1, multiplyAdd(ratings0, factors0, v128.load(lanes))));
  v128.store(factors, f32x4.sub(ratings0, factors0));
  v128.store(factors, f32x4.sub(ratings1, factors1), 16);
}

/** factors[k] = t_k - w_k factors[k]; the 4 lanes at `lanes` += t_k factors[k]. */
@inline
function subtractFromTargets(targets: usize, weights: usize, factors: usize, lanes: usize): void {
  const targets0 = v128.load(targets);
  const targets1 = v128.load(targets, 16);
  const factors0 = v128.load(factors);
  const factors1 = v128.load(factors, 16);
  v128.store(lanes, multiplyAdd(targets1, factors1, multiplyAdd(targets0, factors0, v128.load(lanes))));
  v128.store(factors, f32x4.sub(targets0, f32x4.mul(v128.load(weights), factors0)));
  v128.store(factors, f32x4.sub(targets1, f32x4.mul(v128.load(weights, 16), factors1)), 16);
}

/** factors[k] *= weights[k] for the eight ratings of a panel. */
@inline
function weigh(weights: usize, factors: usize): void {
  v128.store(factors, f32x4.mul(v128.load(weights), v128.load(factors)));
  v128.store(factors, f32x4.mul(v128.load(weights, 16), v128.load(factors, 16)), 16);
}

/** The four lanes at `lanes` += Σ w t², for the eight products t of a panel. */
@inline
function addSquares(weights: usize, products: usize, lanes: usize): void {
  const first = v128.load(products);
  const second = v128.load(products, 16);
  const weightedFirst = weights ? f32x4.mul(v128.load(weights), first) : first;
  const weightedSecond = weights ? f32x4.mul(v128.load(weights, 16), second) : second;
  v128.store(lanes, multiplyAdd(weightedSecond, second, multiplyAdd(weightedFirst, first, v128.load(lanes))));
}

@inline
function lanesOf(row: RowProblem): usize {
  return changetype<usize>(row) + offsetof<RowProblem>('lanes');
}

/**
 * y += Σ w (θᵀp) θ over `count` > 0 ratings of the row, the first of which is number `from`. Their rows of θ
 * are gathered in the same pass.
 *
 * - `panels`: 0, or where the panels are stored; packed if the row's are. If they are packed or not stored,
 *   row.spare has room for an unpacked panel.
 * - `residual`: true for y += Σ (t - w θᵀp) θ instead. Then Σ t θᵀp is added to the row's lanes.
 * - `sums`: 0, or a vector to which Σ θ is added as well.
 */
export function gatherAndMultiply(
  row: RowProblem,
  from: i32,
  count: i32,
  panels: usize,
  p: usize,
  y: usize,
  sums: usize,
  residual: bool,
): void {
  const theta = row.theta;
  const size = row.size;
  const factors = row.products;
  const far = row.far != 0;
  const weighted = row.weights != 0;
  const first = (<usize>from) << 2;
  let indices = row.indices + first;
  let values = row.values + first;
  let weights = row.weights + first;
  const half = halfWords(factors + 64);
  const packed = panels != 0 && row.packed != 0;
  const inPlace = panels != 0 && !packed;
  const step: usize = inPlace ? size << 3 : packed ? size << 2 : 0;
  const spare = row.spare;
  let touched: u32 = 0;
  for (; count > 0; count -= PANEL) {
    const panel = inPlace ? panels : spare;
    gatherAndMultiplyPanel(theta, size, indices, count, panel, p, factors);
    if (residual) {
      if (weighted) subtractFromTargets(values, weights, factors, lanesOf(row));
      else subtractFromRatings(values, count, factors, lanesOf(row), factors + 32);
    } else if (weighted) weigh(weights, factors);
    values += STEP;
    weights += STEP;
    indices += STEP;
    if (far && count >= 2 * PANEL) touched += touchRows(theta, size, indices);
    if (packed) {
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

@inline
function multiplyEither(packed: bool, panel: usize, size: usize, p: usize, products: usize): void {
  if (packed) multiplyPackedPanel(panel, size, p, products);
  else multiplyPanel(panel, size, p, products);
}

@inline
function addEither(packed: bool, panel: usize, size: usize, factors: usize, y: usize): void {
  if (packed) addPackedPanel(panel, size, factors, y);
  else addPanel(panel, size, factors, y);
}

/** The common code of multiplyPanels, with `packed` as a compile-time constant. */
@inline
function multiplyKept(row: RowProblem, backward: bool, packed: bool): void {
  const size = row.size;
  const p = row.p;
  const q = row.q;
  let left = (row.kept - 1) / PANEL;
  let panels = row.panels;
  let step = <isize>(packed ? size << 2 : size << 3);
  let weights = row.weights;
  let weightStep: isize = weights ? STEP : 0;
  if (backward) {
    panels += left * step;
    weights += left * weightStep;
    step = -step;
    weightStep = -weightStep;
  }
  let factors = row.products;
  let other = factors + 32;
  multiplyEither(packed, panels, size, p, factors);
  if (weights) weigh(weights, factors);
  for (; left > 0; left--) {
    weights += weightStep;
    multiplyEither(packed, panels + step, size, p, other);
    if (weights) weigh(weights, other);
    addEither(packed, panels, size, factors, q);
    panels += step;
    const swap = factors;
    factors = other;
    other = swap;
  }
  addEither(packed, panels, size, factors, q);
}

/**
 * q += ΘᵀWΘ p over the row's panels. If `backward`, panels are read from the last to the first: passes
 * alternate, so each begins with panels that the previous pass has left in the cache. The products of the
 * next panel are computed before the sum over this one, which hides their latency.
 */
export function multiplyPanels(row: RowProblem, backward: bool): void {
  if (row.packed) multiplyKept(row, backward, true);
  else multiplyKept(row, backward, false);
}

/**
 * Adds Σ w (θᵀp)² over the row's panels to its lanes. This is pᵀA p without A p, at half the work: the last
 * step of conjugate gradients needs no more. `backward` as in multiplyPanels.
 */
export function addPanelsCurvature(row: RowProblem, backward: bool): void {
  const size = row.size;
  const p = row.p;
  const packed = row.packed != 0;
  const products = row.products;
  let left = (row.kept - 1) / PANEL;
  let panels = row.panels;
  let step = <isize>(packed ? size << 2 : size << 3);
  let weights = row.weights;
  let weightStep: isize = weights ? STEP : 0;
  if (backward) {
    panels += left * step;
    weights += left * weightStep;
    step = -step;
    weightStep = -weightStep;
  }
  for (; left >= 0; left--) {
    multiplyEither(packed, panels, size, p, products);
    addSquares(weights, products, lanesOf(row));
    panels += step;
    weights += weightStep;
  }
}

/** Like addPanelsCurvature, for `count` > 0 ratings from `from` on, which are gathered into one panel at a time. */
export function addGatheredCurvature(row: RowProblem, from: i32, count: i32): void {
  const theta = row.theta;
  const size = row.size;
  const p = row.p;
  const products = row.products;
  const panel = row.spare;
  const first = (<usize>from) << 2;
  let indices = row.indices + first;
  let weights = row.weights ? row.weights + first : 0;
  let touched: u32 = 0;
  for (; count > 0; count -= PANEL) {
    gatherAndMultiplyPanel(theta, size, indices, count, panel, p, products);
    addSquares(weights, products, lanesOf(row));
    if (weights) weights += STEP;
    indices += STEP;
    if (count >= 2 * PANEL) touched += touchRows(theta, size, indices);
  }
  store<u32>(products, touched);
}
