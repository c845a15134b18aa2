import { PANEL } from './panels';

/**
 * The problem of one row, and the memory in which it is solved. With the weights w, values t, a shift and
 * optionally G and a prior (a, β₀) of all ratings v of the row, x and a bias β minimize
 *
 *     Σ_v (w (θ_vᵀx + β)² - 2 t (θ_vᵀx + β)) + xᵀG x + shift ‖x - a‖² + ownShift (β - β₀)²
 *
 * Explicit ratings have w = 1, t = r and no G. Implicit ones (gram.ts) have no bias.
 *
 * A task writes the fields that hold for all rows once, and for each chunk the fields of the chunk. A kernel
 * writes the fields of a row. Addresses are in bytes, and 0 means none. A vector has `size` bytes.
 *
 * The workspace:
 *
 *     matrix     size² / 4              A, or the dual's matrix; nothing for rows above MOST_FORMED
 *     vectors    VECTORS * size + 128   b, r, p, q, products, and s of a bias at the end
 *     gathered   the rest               a tile and a part of A, the transposed Θ of the dual, or all panels of the row
 */
@unmanaged
export class RowProblem {
  /** Four sums, to which passes over the row's ratings add Σ t θᵀp, or Σ w (θᵀp)². */
  lanes: v128;
  /** The eight weights and eight targets of the next rows, while hideNext has replaced them by zeros. */
  nextWeights: v128;
  moreWeights: v128;
  nextTargets: v128;
  moreTargets: v128;
  /** The minimized terms of the row solved last, without Σ r²: see update.ts. */
  objective: f64;
  /** The sum of the objectives of updateRows. */
  objectives: f64;

  /** Rows of Θ have `size` bytes, of which `rank` elements are used. */
  theta: usize;
  size: usize;
  rank: i32;
  /** 1 if Θ is larger than the caches: rows of the next panel are then requested before this one is summed. */
  far: i32;
  /** G, with both triangles. */
  gram: usize;
  /** The row's prior a, or 0: the shift draws x to a in place of zero, as shift ‖x - a‖² and ownShift (β - priorBias)². */
  prior: usize;
  priorBias: f32;
  /** 1: G draws x to the prior, too, as (x - a)ᵀG (x - a): ratings move a known row away from a. */
  anchored: i32;

  /** Rows with fewer ratings are solved by CG if `exact` is Cholesky; `exact` is a Method (update.ts). */
  cgBelow: i32;
  steps: i32;
  /** 1: a row for which CG leaves a larger residual than an exact solve is solved exactly, if A can be formed. */
  settles: i32;
  exact: i32;

  workspace: usize;
  workspaceBytes: usize;

  /** The row's ratings: columns, values t, and weights w, of which eight zeros follow the last. */
  indices: usize;
  values: usize;
  weights: usize;
  count: i32;

  shift: f32;
  /** The address of β, and its regularization; n + ownShift, and Σ t + ownShift β₀. */
  bias: usize;
  ownShift: f32;
  weight: f32;
  total: f32;

  /** The row's new factors and its old ones, which may be the same. */
  x: usize;
  previous: usize;

  /** Vectors of conjugate gradients: residual, direction, A times it, and s = Σ θ of a bias. */
  r: usize;
  p: usize;
  q: usize;
  sums: usize;
  /** 128 bytes for the products of a panel's ratings. */
  products: usize;
  /** ρ = rᵀr, the ρ at which the steps end, and sᵀp. */
  rho: f32;
  endingRho: f32;
  biasProduct: f32;

  /** Ratings whose panels are kept for all steps, the first of the row, a multiple of 8 unless it is all. */
  kept: i32;
  /** 1 if those panels have 16 bits for each element. */
  packed: i32;
  panels: usize;
  /** A float32 panel of ratings that are not kept. */
  spare: usize;
}

/** Bytes between the problems of an array: `lanes` is aligned to 16 bytes. */
export const PROBLEM_BYTES: usize = (offsetof<RowProblem>() + 15) & ~(<usize>15);

const VECTORS: usize = 6;

/**
 * Most bytes of a factor row for which A is formed: 528 features, since A and a part of it must fit scratch.
 * Longer rows are solved matrix-free, by CG only.
 */
const MOST_FORMED: usize = 4 * 528;

/** True if rows of `size` bytes may be solved from a formed A, and so exactly. */
export function canForm(size: usize): bool {
  return size <= MOST_FORMED;
}

@inline
export function vectorsOf(workspace: usize, size: usize): usize {
  return workspace + (canForm(size) ? (size * size) >> 2 : 0);
}

@inline
export function gatheredOf(workspace: usize, size: usize): usize {
  return vectorsOf(workspace, size) + VECTORS * size + 128;
}

/** s of the row's bias. */
@inline
export function sumsOf(workspace: usize, size: usize): usize {
  return gatheredOf(workspace, size) - size;
}

/** Places the vectors of conjugate gradients in the workspace. */
@inline
export function placeVectors(row: RowProblem): void {
  const size = row.size;
  row.r = vectorsOf(row.workspace, size) + size;
  row.p = row.r + size;
  row.q = row.p + size;
  row.products = row.q + size;
}

/** The bytes of the panels of `count` ratings, a multiple of 8. */
@inline
export function panelBytes(size: usize, count: i32, packed: bool): usize {
  return <usize>count * (packed ? size >> 1 : size);
}

/** Number of ratings whose panels fit the workspace, in addition to one unpacked panel of θ. */
@inline
export function panelCapacity(workspaceBytes: usize, size: usize, packed: bool): i32 {
  return (
    <i32>((workspaceBytes - gatheredOf(0, size) - (size << 3)) / panelBytes(size, PANEL, packed)) * PANEL
  );
}
