/**
 * Conjugate gradients for rows whose ratings are divided among devices, which exchange vectors (see
 * operators/tasks/vector-tasks.ts for the layout of a row's numbers). Each device computes products with its
 * own ratings (addVectorProducts), or with the equations that it formed from them (equations.ts). When these
 * have been summed over the devices, one of them takes the row's step.
 *
 * `scalars`: the numbers after r in that layout. The row's r and s (0 without a bias) are in it, too.
 */
import { sumLanes } from '../simd';
import { addMultiple, allFinite, clear, copy, dot } from '../vectors';
import { multiplyGram } from './conjugate-gradient';
import { gatherAndMultiply, hideNext, showNext } from './panel-passes';
import { RowProblem } from './problem';
import { beginSteps, endResidual, finishRow, isConverged, takeStep } from './steps';

/** Byte offsets, from n, of a row's numbers t, along, ρ and the ρ at which the steps end. */
const TOTAL: usize = 4;
const ALONG: usize = 8;
const RHO: usize = 12;
const ENDING_RHO: usize = 16;

/**
 * Adds products with the row's ratings, of which there is at least one: y += Σ w (θᵀp) θ, or with `residual`
 * y += Σ (t - w θᵀp) θ; with `sums` also sums += Σ θ. Returns Σ t θᵀp.
 */
export function addVectorProducts(problem: usize, residual: bool, y: usize, sums: usize): f32 {
  const row = changetype<RowProblem>(problem);
  row.lanes = f32x4.splat(0);
  if (row.weights) hideNext(row);
  gatherAndMultiply(row, 0, row.count, 0, row.p, y, sums, residual);
  if (row.weights) showNext(row);
  return sumLanes(row.lanes);
}

/** Turns the sums over all devices into the residual of x, and makes it the first direction p. */
export function beginVectors(problem: usize, scalars: usize): void {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  if (row.gram) {
    multiplyGram(row.gram, size, row.x, row.p);
    addMultiple(row.p, row.shift, row.x, size);
    addMultiple(row.r, -1, row.p, size);
  } else {
    addMultiple(row.r, -row.shift, row.x, size);
  }
  row.total = load<f32>(scalars, TOTAL);
  const rho = beginSteps(row, endResidual(row, load<f32>(scalars, ALONG)));
  store<f32>(scalars, row.endingRho, ENDING_RHO);
  keep(row, scalars, isConverged(row, rho) ? 0 : rho);
}

/** Stores ρ for the next step; 0 ends the steps, and p becomes 0. */
function keep(row: RowProblem, scalars: usize, rho: f32): void {
  store<f32>(scalars, rho, RHO);
  if (rho == 0) clear(row.p, row.size);
}

/**
 * Takes a step of x along p. `products`: the products of p with the ratings of all devices. The caller
 * provides the memory of row.q.
 */
export function stepVectors(problem: usize, scalars: usize, products: usize): void {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  row.rho = load<f32>(scalars, RHO);
  if (row.rho == 0) return;
  row.endingRho = load<f32>(scalars, ENDING_RHO);
  if (row.gram) {
    multiplyGram(row.gram, size, row.p, row.q);
    addMultiple(row.q, 1, products, size);
  } else {
    copy(row.q, products, size);
  }
  addMultiple(row.q, row.shift, row.p, size);
  if (row.sums) row.biasProduct = dot(row.sums, row.p, size);
  const rho = takeStep(row);
  keep(row, scalars, rho < 0 || isConverged(row, rho) ? 0 : rho);
}

/** Writes the row's bias to `bias` unless that is 0. Returns true if x is finite. */
export function endVectors(problem: usize, scalars: usize, bias: usize): bool {
  const row = changetype<RowProblem>(problem);
  row.bias = bias;
  row.total = load<f32>(scalars, TOTAL);
  finishRow(row, row.sums);
  return allFinite(row.x, row.size);
}
