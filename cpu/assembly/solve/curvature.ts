/**
 * Computes pᵀA p without A p, which is half the work of the product. The last step of conjugate gradients
 * needs no more, since x += (ρ / pᵀA p) p. `weights`: the ratings' weights, followed by eight zeros; 0 if
 * all weights are 1.
 */
import { VECTOR, multiplyAdd, sumLanes, sumLanesOfFour } from '../simd';
import { gatherAndMultiplyPanel, touchRows } from './gather-panels';
import { multiplyPackedPanel } from './packed-panels';
import { PANEL, multiplyPanel } from './panels';

/** The four lanes at `sum` += Σ w t², for the eight products t of a panel. */
@inline
function addSquares(weights: usize, products: usize, sum: usize): void {
  const first = v128.load(products);
  const second = v128.load(products, 16);
  const weightedFirst = weights ? f32x4.mul(v128.load(weights), first) : first;
  const weightedSecond = weights ? f32x4.mul(v128.load(weights, 16), second) : second;
  v128.store(sum, multiplyAdd(weightedSecond, second, multiplyAdd(weightedFirst, first, v128.load(sum))));
}

/**
 * Adds Σ w (θᵀp)² over `count` > 0 ratings, whose panels are at `panels`, packed or not, to the four lanes at
 * `sum`. `backward` and `products` are as in multiplyPanels.
 */
export function addPanelsCurvature(
  panels: usize,
  size: usize,
  weights: usize,
  count: i32,
  packed: bool,
  backward: bool,
  p: usize,
  products: usize,
  sum: usize,
): void {
  let step = <isize>(packed ? size << 2 : size << 3);
  let weightStep: isize = weights ? 32 : 0;
  let left = (count - 1) / PANEL;
  if (backward) {
    panels += left * step;
    weights += left * weightStep;
    step = -step;
    weightStep = -weightStep;
  }
  for (; left >= 0; left--) {
    if (packed) multiplyPackedPanel(panels, size, p, products);
    else multiplyPanel(panels, size, p, products);
    addSquares(weights, products, sum);
    panels += step;
    weights += weightStep;
  }
}

/**
 * Like addPanelsCurvature, for ratings whose θ are gathered into one panel at a time. `products`: 32 bytes.
 */
export function addGatheredCurvature(
  theta: usize,
  size: usize,
  indices: usize,
  weights: usize,
  count: i32,
  panel: usize,
  p: usize,
  products: usize,
  sum: usize,
): void {
  let touched: u32 = 0;
  for (; count > 0; count -= PANEL) {
    gatherAndMultiplyPanel(theta, size, indices, count, panel, p, products);
    addSquares(weights, products, sum);
    if (weights) weights += 32;
    indices += 32;
    if (count >= 2 * PANEL) touched += touchRows(theta, size, indices);
  }
  store<u32>(products, touched);
}

/** pᵀA p for a symmetric A given by its upper triangle: elements off the diagonal count twice. */
export function symmetricCurvature(matrix: usize, size: usize, p: usize): f32 {
  let sum = f32x4.splat(0);
  const end = p + size;
  for (let i: usize = 0; i < size; i += VECTOR) {
    let row0 = matrix + (i >> 2) * size + i;
    let row1 = row0 + size;
    let row2 = row1 + size;
    let row3 = row2 + size;
    let part = p + i;
    const own = v128.load(part);
    // The 4 x 4 block on the diagonal: half of the diagonal's elements, and none below. The sum is doubled
    // later.
    let sum0 = f32x4.mul(v128.load(row0), f32x4.mul(own, f32x4(0.5, 1, 1, 1)));
    let sum1 = f32x4.mul(
      v128.and(v128.load(row1), i32x4(0, -1, -1, -1)),
      f32x4.mul(own, f32x4(0, 0.5, 1, 1)),
    );
    let sum2 = f32x4.mul(v128.and(v128.load(row2), i32x4(0, 0, -1, -1)), f32x4.mul(own, f32x4(0, 0, 0.5, 1)));
    let sum3 = f32x4.mul(v128.and(v128.load(row3), i32x4(0, 0, 0, -1)), f32x4.mul(own, f32x4(0, 0, 0, 0.5)));
    for (part += VECTOR; part < end; part += VECTOR) {
      row0 += VECTOR;
      row1 += VECTOR;
      row2 += VECTOR;
      row3 += VECTOR;
      const other = v128.load(part);
      sum0 = multiplyAdd(v128.load(row0), other, sum0);
      sum1 = multiplyAdd(v128.load(row1), other, sum1);
      sum2 = multiplyAdd(v128.load(row2), other, sum2);
      sum3 = multiplyAdd(v128.load(row3), other, sum3);
    }
    sum = multiplyAdd(own, sumLanesOfFour(sum0, sum1, sum2, sum3), sum);
  }
  return 2 * sumLanes(sum);
}
