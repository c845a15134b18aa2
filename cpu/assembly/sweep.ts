/**
 * The sweep operator on a block K of adjacent rows and columns of a symmetric matrix A, of which only the
 * elements on and below the diagonal are read and written (Goodnight 1979, A tutorial on the sweep operator).
 * With D = A_KK⁻¹ and C = the columns K of A before the sweep:
 *
 *     A_KK  becomes  -D
 *     A_iK  becomes  C_i D                  for rows i outside K
 *     A_ij  becomes  A_ij - C_i D C_jᵀ      for rows and columns outside K
 *
 * After the sweeps of all blocks A is the negative of its inverse.
 */
import { multiplyAdd, multiplySubtract, VECTOR, WORD } from './simd';

/** Columns of a panel: C_jᵀ of eight adjacent rows j, so that element k of the eight is adjacent. */
const PANEL: i32 = 8;
const PANEL_BYTES: usize = 32;

/**
 * Sweeps the rows [from, to), `from` a multiple of 8. `size`: bytes of a row of the matrix. `panels`: C.
 * `inverse`: D, its rows `width` bytes apart. `first`, `count`: the block K; `first` is a multiple of 8.
 * `work`: 16 * count bytes.
 */
export function sweepRows(
  matrix: usize,
  size: usize,
  panels: usize,
  inverse: usize,
  width: usize,
  first: i32,
  count: i32,
  from: i32,
  to: i32,
  work: usize,
): void {
  const panelSize = <usize>count * PANEL_BYTES;
  for (let row = from; row < to; row += 4) {
    const target = matrix + <usize>row * size;
    if (row >= first && row < first + count) {
      for (let i = row; i < min(row + 4, to); i++)
        sweepOwnRow(matrix + <usize>i * size, panels, panelSize, inverse, width, first, count, i);
      continue;
    }
    const own = panels + <usize>(row / PANEL) * panelSize + <usize>(row % PANEL) * WORD;
    for (let k = 0; k < count; k++)
      v128.store(work + <usize>k * VECTOR, rowTimesInverse(own, inverse, width, count, k));
    const rows = min(4, to - row);
    for (let column = 0; column < row + rows; column += PANEL) {
      if (column >= first && column < first + count) continue;
      const panel = panels + <usize>(column / PANEL) * panelSize;
      subtractProducts(target + <usize>column * WORD, size, panel, count, rows, work);
    }
    if (row < first) continue;
    for (let k = 0; k < count; k++)
      for (let i = 0; i < rows; i++)
        store<f32>(
          target + <usize>i * size + <usize>(first + k) * WORD,
          load<f32>(work + <usize>k * VECTOR + <usize>i * WORD),
        );
  }
}

/** Element k of C_i D for four rows i. D is symmetric, so its row k is read. */
function rowTimesInverse(own: usize, inverse: usize, width: usize, count: i32, k: i32): v128 {
  let sum = f32x4.splat(0);
  const row = inverse + <usize>k * width;
  for (let l = 0; l < count; l++)
    sum = multiplyAdd(
      v128.load(own + <usize>l * PANEL_BYTES),
      v128.load32_splat(row + <usize>l * WORD),
      sum,
    );
  return sum;
}

/**
 * Subtracts C_i D C_jᵀ from eight columns j of up to four rows i. Rows beyond the last are computed as the
 * last one is, and not stored.
 */
function subtractProducts(
  target: usize,
  size: usize,
  panel: usize,
  count: i32,
  rows: i32,
  work: usize,
): void {
  const second = rows > 1 ? target + size : target;
  const third = rows > 2 ? second + size : second;
  const fourth = rows > 3 ? third + size : third;
  let a0 = v128.load(target);
  let a1 = v128.load(target, VECTOR);
  let b0 = v128.load(second);
  let b1 = v128.load(second, VECTOR);
  let c0 = v128.load(third);
  let c1 = v128.load(third, VECTOR);
  let d0 = v128.load(fourth);
  let d1 = v128.load(fourth, VECTOR);
  for (let k = 0; k < count; k++) {
    const low = v128.load(panel);
    const high = v128.load(panel, VECTOR);
    const a = v128.load32_splat(work);
    a0 = multiplySubtract(a, low, a0);
    a1 = multiplySubtract(a, high, a1);
    const b = v128.load32_splat(work, 4);
    b0 = multiplySubtract(b, low, b0);
    b1 = multiplySubtract(b, high, b1);
    const c = v128.load32_splat(work, 8);
    c0 = multiplySubtract(c, low, c0);
    c1 = multiplySubtract(c, high, c1);
    const d = v128.load32_splat(work, 12);
    d0 = multiplySubtract(d, low, d0);
    d1 = multiplySubtract(d, high, d1);
    panel += PANEL_BYTES;
    work += VECTOR;
  }
  v128.store(target, a0);
  v128.store(target, a1, VECTOR);
  if (rows > 1) {
    v128.store(second, b0);
    v128.store(second, b1, VECTOR);
  }
  if (rows > 2) {
    v128.store(third, c0);
    v128.store(third, c1, VECTOR);
  }
  if (rows > 3) {
    v128.store(fourth, d0);
    v128.store(fourth, d1, VECTOR);
  }
}

/** A row of K itself: (C D)ᵀ before the block, and -D in it. */
function sweepOwnRow(
  target: usize,
  panels: usize,
  panelSize: usize,
  inverse: usize,
  width: usize,
  first: i32,
  count: i32,
  row: i32,
): void {
  const own = inverse + <usize>(row - first) * width;
  for (let column = 0; column < first; column += PANEL) {
    const panel = panels + <usize>(column / PANEL) * panelSize;
    let low = f32x4.splat(0);
    let high = f32x4.splat(0);
    for (let l = 0; l < count; l++) {
      const factor = v128.load32_splat(own + <usize>l * WORD);
      low = multiplyAdd(v128.load(panel + <usize>l * PANEL_BYTES), factor, low);
      high = multiplyAdd(v128.load(panel + <usize>l * PANEL_BYTES, VECTOR), factor, high);
    }
    v128.store(target + <usize>column * WORD, low);
    v128.store(target + <usize>column * WORD, high, VECTOR);
  }
  for (let k = 0; k < count; k++)
    store<f32>(target + <usize>(first + k) * WORD, -load<f32>(own + <usize>k * WORD));
}
