/**
 * Conjugate gradients for rows whose ratings are read again in each pass: a row whose ratings do not fit
 * scratch, which the caller copies there piece by piece, or a group of rows that are solved together, tile by
 * tile (tiles.ts). A is not formed:
 *
 *     pass 0        r = Σ (t - w θᵀx) θ - G x - shift x       startPasses, then beginPasses
 *     passes 1 ..   q = Σ w (θᵀp) θ + G p + shift p           stepPasses
 *     the last      pᵀA p                                     takeLastPass
 *
 * The caller places the vectors r, p, q, s (0 without a bias), the products and a panel.
 */
import { PART_RATINGS, addVector } from '../normal-equations';
import { sumLanes } from '../simd';
import { allFinite, clear, copy, dot } from '../vectors';
import { regularize, startResidual, symmetricCurvature } from './conjugate-gradient';
import { addGatheredCurvature, gatherAndMultiply } from './panel-passes';
import { RowProblem } from './problem';
import { beginSteps, endResidual, finishRow, isConverged, takeLastStep, takeStep } from './steps';

/** Passes of passPiece and passTiles. */
export const RESIDUAL: i32 = 0;
export const PRODUCT: i32 = 1;
export const CURVATURE: i32 = 2;

/** Before pass 0. x becomes a copy of the previous one. */
export function startPasses(problem: usize): void {
  const row = changetype<RowProblem>(problem);
  if (row.x != row.previous) copy(row.x, row.previous, row.size);
  startResidual(row);
}

/**
 * One pass over a piece of a row's ratings. Each PART_RATINGS ratings are summed by themselves, so that a row
 * of millions of ratings has no float32 chain of millions of additions. The result has the same bits for any
 * pieces if all but the last have a multiple of PART_RATINGS ratings. `part`: two vectors.
 */
export function passPiece(problem: usize, pass: i32, part: usize): void {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  const isFirst = pass == RESIDUAL;
  const partSums: usize = isFirst && row.sums ? part + size : 0;
  for (let start = 0; start < row.count; start += PART_RATINGS) {
    const count = min(row.count - start, PART_RATINGS);
    const lanes = row.lanes;
    row.lanes = f32x4.splat(0);
    if (pass == CURVATURE) {
      addGatheredCurvature(row, start, count);
    } else {
      clear(part, size);
      if (partSums) clear(partSums, size);
      gatherAndMultiply(row, start, count, 0, isFirst ? row.x : row.p, part, partSums, isFirst);
      addVector(isFirst ? row.r : row.q, part, size);
      if (partSums) addVector(row.sums, partSums, size);
    }
    row.lanes = f32x4.add(lanes, row.lanes);
  }
}

/**
 * Prepares the next pass: q = (G + shift) p. If the row takes no further step, p becomes 0, so that passes
 * add nothing to it.
 */
function prepare(row: RowProblem, goesOn: bool): bool {
  if (!goesOn) clear(row.p, row.size);
  regularize(row, 1, row.p, row.q);
  row.lanes = f32x4.splat(0);
  return goesOn;
}

/** After pass 0. Returns true if a step should follow. */
export function beginPasses(problem: usize): bool {
  const row = changetype<RowProblem>(problem);
  const rho = beginSteps(row, endResidual(row, sumLanes(row.lanes)));
  return prepare(row, !isConverged(row, rho));
}

/** After a pass for products. Returns true if a step should follow. */
export function stepPasses(problem: usize): bool {
  const row = changetype<RowProblem>(problem);
  const rho = takeStep(row);
  return prepare(row, !(rho < 0 || isConverged(row, rho)));
}

/** The last step, after the pass for pᵀA p. */
export function takeLastPass(problem: usize): void {
  const row = changetype<RowProblem>(problem);
  let curvature = sumLanes(row.lanes) + row.shift * dot(row.p, row.p, row.size);
  if (row.gram) curvature += symmetricCurvature(row.gram, row.size, row.p);
  takeLastStep(row, curvature);
}

/** After the steps: writes the row's bias. Returns true if x is finite. */
export function endPasses(problem: usize): bool {
  const row = changetype<RowProblem>(problem);
  finishRow(row, row.sums);
  return allFinite(row.x, row.size);
}
