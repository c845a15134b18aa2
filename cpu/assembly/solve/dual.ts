/**
 * Solves a row with fewer ratings n than features f exactly, through the n x n dual system:
 *
 *     x = (ΘᵀΘ + s I)⁻¹ Θᵀ r = Θᵀ z,  z = (ΘΘᵀ + s I)⁻¹ r        Θ: n x f, s = λ n
 *
 * A bias β with the regularization ω = λ n + d is one more feature. With κ = s / ω, z solves (ΘΘᵀ + κ 11ᵀ + s
 * I) z = r and β = κ Σ z: Θᵀ has one more row, whose elements are √κ.
 *
 * With a prior, x = a + Θᵀz and β = β₀ + κ Σ z, where z solves the system for r - Θ a - β₀ in place of r.
 *
 * Θ is gathered transposed (f rows of `width` = n rounded up to 8), so that the 4 x 8 register blocks of
 * normal-equations.ts compute ΘΘᵀ. Padding ratings are zero columns with 1 on the diagonal: their z is 0.
 */
import { VECTOR, WORD, indexAt, multiplyAdd } from '../simd';
import { addDiagonal, definiteShift, solveCholesky } from './cholesky';
import { addTile } from '../normal-equations';
import { addMultiple, clear, dot, sumOf } from '../vectors';
import { RowProblem, gatheredOf, vectorsOf } from './problem';

/** Copies Θᵀ of `count` ratings to `target`: size / 4 rows of `width` bytes. */
function gatherTransposed(
  theta: usize,
  size: usize,
  indices: usize,
  count: i32,
  target: usize,
  width: usize,
): void {
  const last = count - 1;
  for (let k = 0; (<usize>k) << 2 < width; k += 4) {
    // Past the last rating, its row is read again, and `keep` masks the values to 0.
    const source0 = theta + indexAt(indices, min(k, last)) * size;
    const source1 = theta + indexAt(indices, min(k + 1, last)) * size;
    const source2 = theta + indexAt(indices, min(k + 2, last)) * size;
    const source3 = theta + indexAt(indices, min(k + 3, last)) * size;
    const keep = i32x4.lt_s(i32x4.add(i32x4.splat(k), i32x4(0, 1, 2, 3)), i32x4.splat(count));
    let row = target + ((<usize>k) << 2);
    for (let j: usize = 0; j < size; j += VECTOR) {
      const a = v128.load(source0 + j);
      const b = v128.load(source1 + j);
      const c = v128.load(source2 + j);
      const d = v128.load(source3 + j);
      const abLow = v128.shuffle<f32>(a, b, 0, 4, 1, 5);
      const abHigh = v128.shuffle<f32>(a, b, 2, 6, 3, 7);
      const cdLow = v128.shuffle<f32>(c, d, 0, 4, 1, 5);
      const cdHigh = v128.shuffle<f32>(c, d, 2, 6, 3, 7);
      v128.store(row, v128.and(keep, v128.shuffle<f32>(abLow, cdLow, 0, 1, 4, 5)));
      row += width;
      v128.store(row, v128.and(keep, v128.shuffle<f32>(abLow, cdLow, 2, 3, 6, 7)));
      row += width;
      v128.store(row, v128.and(keep, v128.shuffle<f32>(abHigh, cdHigh, 0, 1, 4, 5)));
      row += width;
      v128.store(row, v128.and(keep, v128.shuffle<f32>(abHigh, cdHigh, 2, 3, 6, 7)));
      row += width;
    }
  }
}

/** x = Σ z_k θ_k */
function combineRows(theta: usize, size: usize, indices: usize, z: usize, count: i32, x: usize): void {
  clear(x, size);
  let k = 0;
  for (; k + 4 <= count; k += 4) {
    const row0 = theta + indexAt(indices, k) * size;
    const row1 = theta + indexAt(indices, k + 1) * size;
    const row2 = theta + indexAt(indices, k + 2) * size;
    const row3 = theta + indexAt(indices, k + 3) * size;
    const factors = z + ((<usize>k) << 2);
    const factor0 = v128.load32_splat(factors);
    const factor1 = v128.load32_splat(factors, 4);
    const factor2 = v128.load32_splat(factors, 8);
    const factor3 = v128.load32_splat(factors, 12);
    for (let j: usize = 0; j < size; j += VECTOR) {
      const low = multiplyAdd(
        factor1,
        v128.load(row1 + j),
        multiplyAdd(factor0, v128.load(row0 + j), v128.load(x + j)),
      );
      v128.store(
        x + j,
        multiplyAdd(factor3, v128.load(row3 + j), multiplyAdd(factor2, v128.load(row2 + j), low)),
      );
    }
  }
  for (; k < count; k++) {
    const row = theta + indexAt(indices, k) * size;
    const factor = v128.load32_splat(z + ((<usize>k) << 2));
    for (let j: usize = 0; j < size; j += VECTOR)
      v128.store(x + j, multiplyAdd(factor, v128.load(row + j), v128.load(x + j)));
  }
}

/**
 * True if solving the n x n dual system costs less than solving A: if the row's number of ratings n, rounded
 * up to whole register blocks, is below the padded number of features. The padding is less than one block, so
 * then n < f.
 */
@inline
export function dualIsCheaper(count: i32, size: usize): bool {
  return widthOf(count) < size;
}

/** Bytes of a vector of `count` ratings. */
@inline
function widthOf(count: i32): usize {
  return (((<usize>count) << 2) + 31) & ~(<usize>31);
}

/** residuals -= Θ a + β₀, for the row's ratings. `transposed`: Θᵀ. */
function subtractPrior(row: RowProblem, transposed: usize, width: usize, residuals: usize): void {
  for (let i: usize = 0; i < row.size; i += WORD)
    addMultiple(residuals, -load<f32>(row.prior + i), transposed + (i >> 2) * width, width);
  if (!row.bias) return;
  for (let end = residuals + ((<usize>row.count) << 2); residuals < end; residuals += WORD)
    store<f32>(residuals, load<f32>(residuals) - row.priorBias);
}

/**
 * Solves a row of 1 <= count <= size / 4 ratings, which weigh 1. Returns false if the system is not positive
 * definite. The workspace has its matrix and z, and Θᵀ where other solvers have panels.
 */
export function solveDual(problem: usize): bool {
  const row = changetype<RowProblem>(problem);
  const size = row.size;
  const count = row.count;
  const matrix = row.workspace;
  const work = vectorsOf(matrix, size);
  const transposed = gatheredOf(matrix, size);
  const ratio: f32 = row.bias ? row.shift / row.ownShift : 0;
  const width = widthOf(count);
  const z = work + width;
  gatherTransposed(row.theta, size, row.indices, count, transposed, width);
  let features = <i32>(size >> 2);
  if (ratio > 0) {
    const ones = transposed + <usize>features * width;
    const root: f32 = sqrt<f32>(ratio);
    clear(ones, width);
    for (let k = 0; k < count; k++) store<f32>(ones + ((<usize>k) << 2), root);
    features++;
  }
  addTile(transposed, width, features, matrix, false);
  const diagonal = definiteShift(matrix, width, count, row.shift);
  addDiagonal(matrix, width, count, diagonal);
  clear(work, width);
  memory.copy(work, row.values, <usize>count * WORD);
  const squares = dot(work, work, width);
  if (row.prior) subtractPrior(row, transposed, width, work);
  const definite = solveCholesky(matrix, width, work, z, z + width);
  // The row's part of the loss is s rᵀz, with the r of the system. rᵀz is the square of the solution of Uᵀy = r, which has overwritten r.
  row.objective = <f64>diagonal * <f64>dot(work, work, width) - <f64>squares;
  combineRows(row.theta, size, row.indices, z, count, row.x);
  if (row.prior) addMultiple(row.x, 1, row.prior, size);
  if (ratio > 0) store<f32>(row.bias, row.priorBias + ratio * <f32>sumOf(z, count));
  return definite;
}
