/**
 * Copies the normal equations of a row between two layouts. While several tasks add up the ratings of a row,
 * which another task then solves, its equations are stored as in operators/tasks/equation-tasks.ts: A as its
 * lower triangle, row by row. The kernels that sum and solve use the workspace of update.ts, where A is its
 * upper triangle in whole 8 x 8 blocks. So A is transposed on the way, in blocks of 4 x 4 in registers.
 */
import { VECTOR, WORD, multiplyAdd, sumLanes } from './simd';
import { sumsOf, vectorsOf } from './solve/problem';
import { clear } from './vectors';

/** Bytes before row i of a packed lower triangle. */
@inline
function rowStart(i: usize): usize {
  return (i * (i + 1)) << 1;
}

/** target += source, `count` numbers. */
function addNumbers(target: usize, source: usize, count: i32): void {
  const end = target + ((<usize>count) << 2);
  for (; target + VECTOR <= end; target += VECTOR, source += VECTOR)
    v128.store(target, f32x4.add(v128.load(target), v128.load(source)));
  for (; target < end; target += WORD, source += WORD)
    store<f32>(target, load<f32>(target) + load<f32>(source));
}

@inline
function addVector(target: usize, sum: v128): void {
  v128.store(target, f32x4.add(v128.load(target), sum));
}

/**
 * Adds the sums in the workspace, over some ratings of a row, to the row's stored equations: A, b and, if
 * `biased`, s = Σ θ_v. Adds `count` to the row's number of ratings n and, if `biased`, `total` to their sum
 * t.
 */
export function addToEquations(
  equations: usize,
  size: usize,
  rank: i32,
  count: f32,
  total: f32,
  biased: bool,
  workspace: usize,
): void {
  const features = <usize>rank;
  for (let i: usize = 0; i < features; i += 4) {
    const column = workspace + (i << 2);
    const rows = min<usize>(4, features - i);
    const row0 = equations + rowStart(i);
    const row1 = equations + rowStart(i + 1);
    const row2 = equations + rowStart(i + 2);
    const row3 = equations + rowStart(i + 3);
    for (let j: usize = 0; j < i; j += 4) {
      const source = column + j * size;
      const upper0 = v128.load(source);
      const upper1 = v128.load(source + size);
      const upper2 = v128.load(source + 2 * size);
      const upper3 = v128.load(source + 3 * size);
      const left01 = v128.shuffle<f32>(upper0, upper1, 0, 4, 1, 5);
      const left23 = v128.shuffle<f32>(upper2, upper3, 0, 4, 1, 5);
      const at = j << 2;
      addVector(row0 + at, v128.shuffle<f32>(left01, left23, 0, 1, 4, 5));
      if (rows > 1) addVector(row1 + at, v128.shuffle<f32>(left01, left23, 2, 3, 6, 7));
      if (rows < 3) continue;
      const right01 = v128.shuffle<f32>(upper0, upper1, 2, 6, 3, 7);
      const right23 = v128.shuffle<f32>(upper2, upper3, 2, 6, 3, 7);
      addVector(row2 + at, v128.shuffle<f32>(right01, right23, 0, 1, 4, 5));
      if (rows > 3) addVector(row3 + at, v128.shuffle<f32>(right01, right23, 2, 3, 6, 7));
    }
    for (let r: usize = 0; r < rows; r++) {
      const target = equations + rowStart(i + r) + (i << 2);
      for (let c: usize = 0; c <= r; c++) {
        const at = c << 2;
        store<f32>(target + at, load<f32>(target + at) + load<f32>(column + (i + c) * size + (r << 2)));
      }
    }
  }
  const vector = equations + rowStart(features);
  addNumbers(vector, vectorsOf(workspace, size), rank);
  const n = vector + (features << 2);
  store<f32>(n, load<f32>(n) + count);
  if (!biased) return;
  addNumbers(n + WORD, sumsOf(workspace, size), rank);
  const t = n + WORD + (features << 2);
  store<f32>(t, load<f32>(t) + total);
}

/**
 * Copies the stored equations of a row to the workspace, as solveAccumulated needs them: A in whole 8 x 8
 * blocks, b and, if `biased`, s. Padding becomes 0.
 */
export function takeEquations(
  equations: usize,
  size: usize,
  rank: i32,
  biased: bool,
  workspace: usize,
): void {
  const features = <usize>rank;
  memory.fill(workspace, 0, (size * size) >> 2);
  const zero = f32x4.splat(0);
  for (let i: usize = 0; i < features; i += 4) {
    const column = workspace + (i << 2);
    const rows = min<usize>(4, features - i);
    const row0 = equations + rowStart(i);
    const row1 = equations + rowStart(i + 1);
    const row2 = equations + rowStart(i + 2);
    const row3 = equations + rowStart(i + 3);
    for (let j: usize = 0; j < i; j += 4) {
      const at = j << 2;
      const lower0 = v128.load(row0 + at);
      const lower1 = rows > 1 ? v128.load(row1 + at) : zero;
      const lower2 = rows > 2 ? v128.load(row2 + at) : zero;
      const lower3 = rows > 3 ? v128.load(row3 + at) : zero;
      const left01 = v128.shuffle<f32>(lower0, lower1, 0, 4, 1, 5);
      const left23 = v128.shuffle<f32>(lower2, lower3, 0, 4, 1, 5);
      const right01 = v128.shuffle<f32>(lower0, lower1, 2, 6, 3, 7);
      const right23 = v128.shuffle<f32>(lower2, lower3, 2, 6, 3, 7);
      const target = column + j * size;
      v128.store(target, v128.shuffle<f32>(left01, left23, 0, 1, 4, 5));
      v128.store(target + size, v128.shuffle<f32>(left01, left23, 2, 3, 6, 7));
      v128.store(target + 2 * size, v128.shuffle<f32>(right01, right23, 0, 1, 4, 5));
      v128.store(target + 3 * size, v128.shuffle<f32>(right01, right23, 2, 3, 6, 7));
    }
    // The 4 x 4 blocks on the diagonal get both triangles, as the kernels that sum A write them.
    for (let r: usize = 0; r < rows; r++) {
      const source = equations + rowStart(i + r) + (i << 2);
      for (let c: usize = 0; c <= r; c++) {
        const element = load<f32>(source + (c << 2));
        store<f32>(column + (i + c) * size + (r << 2), element);
        store<f32>(column + (i + r) * size + (c << 2), element);
      }
    }
  }
  const vector = equations + rowStart(features);
  takeVector(vectorsOf(workspace, size), vector, size, features);
  if (biased) takeVector(sumsOf(workspace, size), vector + ((features + 1) << 2), size, features);
}

function takeVector(target: usize, source: usize, size: usize, features: usize): void {
  clear(target, size);
  memory.copy(target, source, features << 2);
}

/**
 * y += factor A p for the packed lower triangle of A. Each element below the diagonal is read once, and used
 * for its row and for its column.
 */
export function addTriangleProducts(triangle: usize, rank: i32, factor: f32, p: usize, y: usize): void {
  const features = <usize>rank;
  let row = triangle;
  for (let i: usize = 0; i < features; i++) {
    const own = factor * load<f32>(p + (i << 2));
    const scaled = f32x4.splat(own);
    let sums = f32x4.splat(0);
    let at: usize = 0;
    const end = i << 2;
    for (; at + VECTOR <= end; at += VECTOR) {
      const elements = v128.load(row + at);
      sums = multiplyAdd(elements, v128.load(p + at), sums);
      v128.store(y + at, multiplyAdd(scaled, elements, v128.load(y + at)));
    }
    let sum = sumLanes(sums);
    for (; at < end; at += WORD) {
      const element = load<f32>(row + at);
      sum += element * load<f32>(p + at);
      store<f32>(y + at, load<f32>(y + at) + own * element);
    }
    store<f32>(y + end, load<f32>(y + end) + factor * sum + own * load<f32>(row + end));
    row += end + WORD;
  }
}

/**
 * Adds one device's equations of a row to the row's gradients (fields: operators/tasks/vector-tasks.ts): its
 * b - A x to `gradients`; n (ratings), with biases t (their sum), and bᵀx to `scalars`; with biases s = Σ θ_v
 * to `sums`, which is 0 without biases.
 */
export function addEquationResidual(
  equations: usize,
  rank: i32,
  x: usize,
  gradients: usize,
  scalars: usize,
  sums: usize,
): void {
  const features = <usize>rank;
  addTriangleProducts(equations, rank, -1, x, gradients);
  const b = equations + ((features * (features + 1)) << 1);
  const n = b + (features << 2);
  let along: f32 = 0;
  for (let at: usize = 0; at < features << 2; at += WORD) {
    const value = load<f32>(b + at);
    store<f32>(gradients + at, load<f32>(gradients + at) + value);
    along += value * load<f32>(x + at);
    if (sums) store<f32>(sums + at, load<f32>(sums + at) + load<f32>(n + WORD + at));
  }
  store<f32>(scalars, load<f32>(scalars) + load<f32>(n));
  if (sums) store<f32>(scalars, load<f32>(scalars, 4) + load<f32>(n + WORD + (features << 2)), 4);
  store<f32>(scalars, load<f32>(scalars, 8) + along, 8);
}
