/**
 * Sums what the ratings of a row add to its implicit normal equations: A += Σ w θ θᵀ and b += Σ t θ. Rows of
 * θ are multiplied by √w when they are copied to the tiles of normal-equations.ts, so that their products
 * have the weight w.
 */
import { addPart, addTile, PART_RATINGS, TILE_ROWS } from '../normal-equations';
import { VECTOR, WORD, indexAt, multiplyAdd } from '../simd';
import { clear } from '../vectors';

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

/**
 * Adds `count` ratings to A and b. If `accumulate` is false and `count` > 0, overwrites A and b. The order of
 * sums, `size` and `work` are as in addNormalEquations.
 */
export function addWeightedEquations(
  theta: usize,
  size: usize,
  indices: usize,
  targets: usize,
  weights: usize,
  count: i32,
  matrix: usize,
  bias: usize,
  work: usize,
  accumulate: bool,
): void {
  const tile = work;
  const partBias = tile + <usize>TILE_ROWS * size;
  const part = partBias + size;
  for (let start = 0; start < count; start += PART_RATINGS) {
    const end = min(start + PART_RATINGS, count);
    const apart = accumulate || start > 0;
    const targetBias = apart ? partBias : bias;
    const target = apart ? part : matrix;
    clear(targetBias, size);
    for (let first = start; first < end; first += TILE_ROWS) {
      const rows = min(end - first, TILE_ROWS);
      const offset = <usize>first * WORD;
      gatherWeightedTile(
        theta,
        size,
        indices + offset,
        targets + offset,
        weights + offset,
        rows,
        tile,
        targetBias,
      );
      addTile(tile, size, rows, target, first > start);
    }
    if (apart) addPart(matrix, bias, part, partBias, size);
  }
}

/** A += G over the upper triangle of whole 8 x 8 blocks. */
export function addGram(matrix: usize, gram: usize, size: usize): void {
  for (let i: usize = 0; i < size; i += WORD) {
    const row = (i >> 2) * size;
    for (let j = i & ~(<usize>31); j < size; j += VECTOR) {
      v128.store(matrix + row + j, f32x4.add(v128.load(matrix + row + j), v128.load(gram + row + j)));
    }
  }
}
