/**
 * The products of solve/panels.ts with a weight for each rating: y += Θᵀ W Θ p. Lists of weights end in eight
 * zeros, for the last panel's missing ratings.
 */
import { gatherAndMultiplyPanel, PACKED_PANELS, PANELS, touchRows } from '../solve/gather-panels';
import { addAndPack, halfWords, weigh } from '../solve/packed-panels';
import { addPanel, multiplyPanel, PANEL } from '../solve/panels';
import { multiplyAdd } from '../simd';

/** Bytes of the weights of a panel. */
const STEP: usize = 32;

/** factors[k] = t_k - w_k factors[k]; the 4 lanes at `products` += t_k factors[k]. */
@inline
function subtractFromTargets(targets: usize, weights: usize, factors: usize, products: usize): void {
  const targets0 = v128.load(targets);
  const targets1 = v128.load(targets, 16);
  const factors0 = v128.load(factors);
  const factors1 = v128.load(factors, 16);
  v128.store(products, multiplyAdd(targets1, factors1, multiplyAdd(targets0, factors0, v128.load(products))));
  v128.store(factors, f32x4.sub(targets0, f32x4.mul(v128.load(weights), factors0)));
  v128.store(factors, f32x4.sub(targets1, f32x4.mul(v128.load(weights, 16), factors1)), 16);
}

/**
 * y += Θᵀ W Θ p over `count` > 0 ratings whose panels are at `panels`. `backward` and `factors` are as in
 * multiplyPanels.
 */
export function multiplyWeightedPanels(
  panels: usize,
  size: usize,
  weights: usize,
  count: i32,
  backward: bool,
  p: usize,
  y: usize,
  factors: usize,
): void {
  let step = <isize>(size << 3);
  let weightStep = <isize>STEP;
  let left = (count - 1) / PANEL;
  if (backward) {
    panels += <usize>left * (size << 3);
    weights += <usize>left * STEP;
    step = -step;
    weightStep = -weightStep;
  }
  let other = factors + 32;
  multiplyPanel(panels, size, p, factors);
  weigh(weights, factors);
  for (; left > 0; left--) {
    weights += weightStep;
    multiplyPanel(panels + step, size, p, other);
    weigh(weights, other);
    addPanel(panels, size, factors, y);
    panels += step;
    const swap = factors;
    factors = other;
    other = swap;
  }
  addPanel(panels, size, factors, y);
}

/**
 * Like multiplyWeightedPanels, for ratings whose θ are gathered in the same pass; `kind`, `panels`, `spare`
 * and `far` as in gatherAndMultiply. With `targets`, computes y += Σ (t - w θᵀp) θ instead, and adds Σ t θᵀp
 * to the four lanes at factors + 32. `factors`: 96 bytes.
 */
export function gatherAndMultiplyWeighted(
  theta: usize,
  size: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  count: i32,
  panels: usize,
  kind: i32,
  spare: usize,
  p: usize,
  y: usize,
  factors: usize,
  far: bool,
): void {
  const half = halfWords(factors + 80);
  const step: usize = kind == PANELS ? size << 3 : kind == PACKED_PANELS ? size << 2 : 0;
  let touched: u32 = 0;
  for (; count > 0; count -= PANEL) {
    const panel = kind == PANELS ? panels : spare;
    gatherAndMultiplyPanel(theta, size, indices, count, panel, p, factors);
    if (targets) {
      subtractFromTargets(targets, weights, factors, factors + 32);
      targets += STEP;
    } else {
      weigh(weights, factors);
    }
    weights += STEP;
    indices += 32;
    if (far && count >= 2 * PANEL) touched += touchRows(theta, size, indices);
    if (kind == PACKED_PANELS) addAndPack(panel, size, factors, y, panels, half);
    else addPanel(panel, size, factors, y);
    panels += step;
  }
  store<u32>(factors, touched);
}
