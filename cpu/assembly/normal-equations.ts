/**
 * Sums the normal equations of one row u (cuMF, eq. 2; the "hermitian" and the "bias" of cuMF_ALS, section
 * II):
 *
 *     A = Σ θ_v θ_vᵀ      stride x stride, row-major, upper triangle: element (i, j) is valid where j >= i
 *     b = Σ r_uv θ_v      stride
 *     s = Σ θ_v           stride, optional: the column of A for a bias (a feature that is 1 on the fixed side)
 *
 * The rows θ_v of the row's ratings are copied to a tile, TILE_ROWS at a time. The tile stays in the
 * first-level cache while it is multiplied with itself in register blocks of 4 x 8:
 *
 *     A[i..i+3, j..j+7] += Σ_k tile[k, i..i+3]ᵀ tile[k, j..j+7]        8 vector accumulators
 *
 * The order of additions depends only on the order of the ratings. With weights w and targets t (gram.ts):
 * A = Σ w θ_v θ_vᵀ and b = Σ t θ_v.
 */
import { VECTOR, WORD, indexAt, multiplyAdd, multiplySubtract } from './simd';
import { RowProblem, gatheredOf, sumsOf, vectorsOf } from './solve/problem';
import { clear } from './vectors';

/** Rows of θ in a tile, which takes 8 KiB at rank 64. */
export const TILE_ROWS: i32 = 32;

/** Number of ratings in one float32 chain of additions; sums of chains are then added up. */
export const PART_RATINGS: i32 = 1024;

/**
 * target[0..3] (+)= Σ over `count` rows of left[0..3]ᵀ right, or -= with `subtract`, for rows of 32 bytes. `left`,
 * `right` and `target` have rows of `rowBytes` bytes. If `accumulate` is false, the target is overwritten.
 */
@inline
export function updateBlock<T>(
  left: usize,
  right: usize,
  rowBytes: usize,
  count: i32,
  target: usize,
  accumulate: bool,
  subtract: bool,
): void {
  const target1 = target + rowBytes;
  const target2 = target1 + rowBytes;
  const target3 = target2 + rowBytes;
  let sum00 = f32x4.splat(0);
  let sum01 = sum00;
  let sum10 = sum00;
  let sum11 = sum00;
  let sum20 = sum00;
  let sum21 = sum00;
  let sum30 = sum00;
  let sum31 = sum00;
  if (accumulate) {
    sum00 = v128.load(target);
    sum01 = v128.load(target, 16);
    sum10 = v128.load(target1);
    sum11 = v128.load(target1, 16);
    sum20 = v128.load(target2);
    sum21 = v128.load(target2, 16);
    sum30 = v128.load(target3);
    sum31 = v128.load(target3, 16);
  }
  for (let k = 0; k < count; k++) {
    const right0 = v128.load(right);
    const right1 = v128.load(right, 16);
    let element = v128.load_splat<T>(left);
    sum00 = addOrSubtract<T>(element, right0, sum00, subtract);
    sum01 = addOrSubtract<T>(element, right1, sum01, subtract);
    element = v128.load_splat<T>(left, sizeof<T>());
    sum10 = addOrSubtract<T>(element, right0, sum10, subtract);
    sum11 = addOrSubtract<T>(element, right1, sum11, subtract);
    element = v128.load_splat<T>(left, 2 * sizeof<T>());
    sum20 = addOrSubtract<T>(element, right0, sum20, subtract);
    sum21 = addOrSubtract<T>(element, right1, sum21, subtract);
    element = v128.load_splat<T>(left, 3 * sizeof<T>());
    sum30 = addOrSubtract<T>(element, right0, sum30, subtract);
    sum31 = addOrSubtract<T>(element, right1, sum31, subtract);
    left += rowBytes;
    right += rowBytes;
  }
  v128.store(target, sum00);
  v128.store(target, sum01, 16);
  v128.store(target1, sum10);
  v128.store(target1, sum11, 16);
  v128.store(target2, sum20);
  v128.store(target2, sum21, 16);
  v128.store(target3, sum30);
  v128.store(target3, sum31, 16);
}

@inline
function addOrSubtract<T>(a: v128, b: v128, sum: v128, subtract: bool): v128 {
  return subtract ? multiplySubtract<T>(a, b, sum) : multiplyAdd<T>(a, b, sum);
}

/** target[0..3, 0..7] (+)= Σ over `count` rows of left[0..3]ᵀ right[0..7]. */
export function multiplyBlock(
  left: usize,
  right: usize,
  rowBytes: usize,
  count: i32,
  target: usize,
  accumulate: bool,
): void {
  updateBlock<f32>(left, right, rowBytes, count, target, accumulate, false);
}

/**
 * Computes an 8 x 8 block on the diagonal of A in 12 accumulators: its upper 4 x 8 and its lower right 4 x 4.
 * The lower left 4 x 4, below the diagonal, becomes 0.
 */
function multiplyDiagonalBlock(
  tile: usize,
  rowBytes: usize,
  count: i32,
  target: usize,
  accumulate: bool,
): void {
  let sum00 = f32x4.splat(0);
  let sum01 = sum00;
  let sum10 = sum00;
  let sum11 = sum00;
  let sum20 = sum00;
  let sum21 = sum00;
  let sum30 = sum00;
  let sum31 = sum00;
  let sum41 = sum00;
  let sum51 = sum00;
  let sum61 = sum00;
  let sum71 = sum00;
  const target2 = target + 2 * rowBytes;
  const target4 = target2 + 2 * rowBytes;
  const target6 = target4 + 2 * rowBytes;
  if (accumulate) {
    sum00 = v128.load(target);
    sum01 = v128.load(target, 16);
    sum10 = v128.load(target + rowBytes);
    sum11 = v128.load(target + rowBytes, 16);
    sum20 = v128.load(target2);
    sum21 = v128.load(target2, 16);
    sum30 = v128.load(target2 + rowBytes);
    sum31 = v128.load(target2 + rowBytes, 16);
    sum41 = v128.load(target4, 16);
    sum51 = v128.load(target4 + rowBytes, 16);
    sum61 = v128.load(target6, 16);
    sum71 = v128.load(target6 + rowBytes, 16);
  } else {
    v128.store(target4, sum00);
    v128.store(target4 + rowBytes, sum00);
    v128.store(target6, sum00);
    v128.store(target6 + rowBytes, sum00);
  }
  for (let k = 0; k < count; k++) {
    const right0 = v128.load(tile);
    const right1 = v128.load(tile, 16);
    let element = v128.load32_splat(tile);
    sum00 = multiplyAdd(element, right0, sum00);
    sum01 = multiplyAdd(element, right1, sum01);
    element = v128.load32_splat(tile, 4);
    sum10 = multiplyAdd(element, right0, sum10);
    sum11 = multiplyAdd(element, right1, sum11);
    element = v128.load32_splat(tile, 8);
    sum20 = multiplyAdd(element, right0, sum20);
    sum21 = multiplyAdd(element, right1, sum21);
    element = v128.load32_splat(tile, 12);
    sum30 = multiplyAdd(element, right0, sum30);
    sum31 = multiplyAdd(element, right1, sum31);
    sum41 = multiplyAdd(v128.load32_splat(tile, 16), right1, sum41);
    sum51 = multiplyAdd(v128.load32_splat(tile, 20), right1, sum51);
    sum61 = multiplyAdd(v128.load32_splat(tile, 24), right1, sum61);
    sum71 = multiplyAdd(v128.load32_splat(tile, 28), right1, sum71);
    tile += rowBytes;
  }
  v128.store(target, sum00);
  v128.store(target, sum01, 16);
  v128.store(target + rowBytes, sum10);
  v128.store(target + rowBytes, sum11, 16);
  v128.store(target2, sum20);
  v128.store(target2, sum21, 16);
  v128.store(target2 + rowBytes, sum30);
  v128.store(target2 + rowBytes, sum31, 16);
  v128.store(target4, sum41, 16);
  v128.store(target4 + rowBytes, sum51, 16);
  v128.store(target6, sum61, 16);
  v128.store(target6 + rowBytes, sum71, 16);
}

/**
 * Computes the upper triangle of tileᵀ tile, with rows of `size` bytes (a multiple of 32). If `accumulate`,
 * adds it to `matrix`, else overwrites `matrix`.
 */
export function addTile(tile: usize, size: usize, count: i32, matrix: usize, accumulate: bool): void {
  for (let i: usize = 0; i < size; i += 2 * VECTOR) {
    const row0 = matrix + (i >> 2) * size;
    const row4 = row0 + 4 * size;
    multiplyDiagonalBlock(tile + i, size, count, row0 + i, accumulate);
    for (let j = i + 2 * VECTOR; j < size; j += 2 * VECTOR) {
      multiplyBlock(tile + i, tile + j, size, count, row0 + j, accumulate);
      multiplyBlock(tile + i + VECTOR, tile + j, size, count, row4 + j, accumulate);
    }
  }
}

/** Copies `count` rows of θ into the tile and adds r θ of each to `bias`. */
function gatherTile(
  theta: usize,
  size: usize,
  indices: usize,
  values: usize,
  count: i32,
  tile: usize,
  bias: usize,
): void {
  let k = 0;
  for (; k + 2 <= count; k += 2) {
    let source0 = theta + indexAt(indices, k) * size;
    let source1 = theta + indexAt(indices, k + 1) * size;
    const rating0 = v128.load32_splat(values + <usize>k * WORD);
    const rating1 = v128.load32_splat(values + <usize>k * WORD, 4);
    let target0 = tile + <usize>k * size;
    let target1 = target0 + size;
    const end = bias + size;
    for (let sum = bias; sum < end; sum += VECTOR) {
      const row0 = v128.load(source0);
      const row1 = v128.load(source1);
      v128.store(target0, row0);
      v128.store(target1, row1);
      v128.store(sum, multiplyAdd(rating1, row1, multiplyAdd(rating0, row0, v128.load(sum))));
      source0 += VECTOR;
      source1 += VECTOR;
      target0 += VECTOR;
      target1 += VECTOR;
    }
  }
  if (k < count) {
    const source = theta + indexAt(indices, k) * size;
    const rating = v128.load32_splat(values + <usize>k * WORD);
    const target = tile + <usize>k * size;
    for (let j: usize = 0; j < size; j += VECTOR) {
      const row = v128.load(source + j);
      v128.store(target + j, row);
      v128.store(bias + j, multiplyAdd(rating, row, v128.load(bias + j)));
    }
  }
}

/**
 * Like gatherTile, for targets t and weights w: adds t θ to `bias`, and multiplies rows by √w when they are
 * copied, so that their products have the weight w.
 */
function gatherWeightedTile(
  theta: usize,
  size: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  count: i32,
  tile: usize,
  bias: usize,
): void {
  for (let k = 0; k < count; k++) {
    const source = theta + indexAt(indices, k) * size;
    const at = <usize>k * WORD;
    const target = v128.load32_splat(targets + at);
    const root = f32x4.splat(sqrt<f32>(load<f32>(weights + at)));
    for (let j: usize = 0; j < size; j += VECTOR) {
      const row = v128.load(source + j);
      v128.store(tile + j, f32x4.mul(root, row));
      v128.store(bias + j, multiplyAdd(target, row, v128.load(bias + j)));
    }
    tile += size;
  }
}

/** sums += the rows of a tile. Four independent chains of additions hide the latency of an addition. */
function addRows(tile: usize, size: usize, count: i32, sums: usize): void {
  for (let j: usize = 0; j < size; j += 2 * VECTOR) {
    let row = tile + j;
    let even0 = f32x4.splat(0);
    let even1 = even0;
    let odd0 = even0;
    let odd1 = even0;
    let k = 0;
    for (; k + 2 <= count; k += 2) {
      even0 = f32x4.add(even0, v128.load(row));
      even1 = f32x4.add(even1, v128.load(row, 16));
      row += size;
      odd0 = f32x4.add(odd0, v128.load(row));
      odd1 = f32x4.add(odd1, v128.load(row, 16));
      row += size;
    }
    if (k < count) {
      even0 = f32x4.add(even0, v128.load(row));
      even1 = f32x4.add(even1, v128.load(row, 16));
    }
    v128.store(sums + j, f32x4.add(v128.load(sums + j), f32x4.add(even0, odd0)));
    v128.store(sums + j, f32x4.add(v128.load(sums + j, 16), f32x4.add(even1, odd1)), 16);
  }
}

/** sum += part */
export function addVector(sum: usize, part: usize, size: usize): void {
  for (let j: usize = 0; j < size; j += VECTOR)
    v128.store(sum + j, f32x4.add(v128.load(sum + j), v128.load(part + j)));
}

/** sum += part, for the upper triangle of A in whole 8 x 8 blocks and for b (`sumBias`, `partBias`). */
function addPart(sum: usize, sumBias: usize, part: usize, partBias: usize, size: usize): void {
  addVector(sumBias, partBias, size);
  for (let i: usize = 0; i < size; i += WORD) {
    const row = (i >> 2) * size;
    for (let j = i & ~(<usize>31); j < size; j += VECTOR) {
      v128.store(sum + row + j, f32x4.add(v128.load(sum + row + j), v128.load(part + row + j)));
    }
  }
}

/**
 * Adds the row's ratings to the A, b and, if `biased`, s of its workspace. If `accumulate` is false and there
 * are ratings, overwrites them.
 *
 * Each PART_RATINGS ratings are first summed by themselves: in one float32 chain of ten million additions the
 * last ones would be lost. Several calls give the same bits as a single one if every call but the last has a
 * multiple of PART_RATINGS ratings.
 */
export function accumulateRow(problem: usize, biased: bool, accumulate: bool): void {
  const row = changetype<RowProblem>(problem);
  const theta = row.theta;
  const size = row.size;
  const matrix = row.workspace;
  const bias = vectorsOf(matrix, size);
  const sums: usize = biased ? sumsOf(matrix, size) : 0;
  const tile = gatheredOf(matrix, size);
  const partBias = tile + <usize>TILE_ROWS * size;
  const partSums = partBias + size;
  const part = partSums + size;
  for (let start = 0; start < row.count; start += PART_RATINGS) {
    const end = min(start + PART_RATINGS, row.count);
    const apart = accumulate || start > 0;
    const targetBias = apart ? partBias : bias;
    const targetSums = apart ? partSums : sums;
    const target = apart ? part : matrix;
    clear(targetBias, size);
    if (sums) clear(targetSums, size);
    for (let first = start; first < end; first += TILE_ROWS) {
      const rows = min(end - first, TILE_ROWS);
      const offset = <usize>first * WORD;
      const indices = row.indices + offset;
      const values = row.values + offset;
      if (row.weights) gatherWeightedTile(theta, size, indices, values, row.weights + offset, rows, tile, targetBias);
      else gatherTile(theta, size, indices, values, rows, tile, targetBias);
      addTile(tile, size, rows, target, first > start);
      if (sums) addRows(tile, size, rows, targetSums);
    }
    if (!apart) continue;
    addPart(matrix, bias, part, partBias, size);
    if (sums) addVector(sums, partSums, size);
  }
}
