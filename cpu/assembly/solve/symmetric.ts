/** Products with a symmetric matrix: a row's A, of which the upper triangle is valid, or G, the Gram matrix. */
import { VECTOR, multiplyAdd, sumLanes, sumLanesOfFour } from '../simd';
import { clear } from '../vectors';

/**
 * y = A p for a symmetric A given by its upper triangle, four rows at a time: each element is read once and
 * used twice.
 */
export function multiplySymmetric(matrix: usize, size: usize, p: usize, y: usize): void {
  const zero = f32x4.splat(0);
  for (let j: usize = 0; j < size; j += VECTOR) v128.store(y + j, zero);
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = matrix + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const part = p + i;
    const target = y + i;
    const factor0 = v128.load32_splat(part);
    const factor1 = v128.load32_splat(part, 4);
    const factor2 = v128.load32_splat(part, 8);
    const factor3 = v128.load32_splat(part, 12);
    let sum0 = zero;
    let sum1 = zero;
    let sum2 = zero;
    let sum3 = zero;
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      const other = v128.load(part + j);
      let below = v128.load(target + j);
      let elements = v128.load(row0 + j);
      below = multiplyAdd(factor0, elements, below);
      sum0 = multiplyAdd(elements, other, sum0);
      elements = v128.load(row1 + j);
      below = multiplyAdd(factor1, elements, below);
      sum1 = multiplyAdd(elements, other, sum1);
      elements = v128.load(row2 + j);
      below = multiplyAdd(factor2, elements, below);
      sum2 = multiplyAdd(elements, other, sum2);
      elements = v128.load(row3 + j);
      below = multiplyAdd(factor3, elements, below);
      sum3 = multiplyAdd(elements, other, sum3);
      v128.store(target + j, below);
    }
    // The 4 x 4 block on the diagonal: its upper triangle, in scalars.
    const p0 = load<f32>(part);
    const p1 = load<f32>(part, 4);
    const p2 = load<f32>(part, 8);
    const p3 = load<f32>(part, 12);
    const a01 = load<f32>(row0, 4);
    const a02 = load<f32>(row0, 8);
    const a03 = load<f32>(row0, 12);
    const a12 = load<f32>(row1, 8);
    const a13 = load<f32>(row1, 12);
    const a23 = load<f32>(row2, 12);
    const y0 = load<f32>(row0) * p0 + a01 * p1 + (a02 * p2 + a03 * p3);
    const y1 = a01 * p0 + load<f32>(row1, 4) * p1 + (a12 * p2 + a13 * p3);
    const y2 = a02 * p0 + a12 * p1 + (load<f32>(row2, 8) * p2 + a23 * p3);
    const y3 = a03 * p0 + a13 * p1 + (a23 * p2 + load<f32>(row3, 12) * p3);
    store<f32>(target, load<f32>(target) + sumLanes(sum0) + y0);
    store<f32>(target, load<f32>(target, 4) + sumLanes(sum1) + y1, 4);
    store<f32>(target, load<f32>(target, 8) + sumLanes(sum2) + y2, 8);
    store<f32>(target, load<f32>(target, 12) + sumLanes(sum3) + y3, 12);
  }
}

/**
 * y = G p, four rows of G at a time. An element right of the diagonal is read once and used twice, as in
 * multiplySymmetric. The 4 x 4 block on the diagonal is multiplied as a whole.
 */
export function multiplyGram(gram: usize, size: usize, p: usize, y: usize): void {
  clear(y, size);
  for (let i: usize = 0; i < size; i += VECTOR) {
    const row0 = gram + (i >> 2) * size + i;
    const row1 = row0 + size;
    const row2 = row1 + size;
    const row3 = row2 + size;
    const part = p + i;
    const target = y + i;
    const factor0 = v128.load32_splat(part);
    const factor1 = v128.load32_splat(part, 4);
    const factor2 = v128.load32_splat(part, 8);
    const factor3 = v128.load32_splat(part, 12);
    let sum0 = f32x4.splat(0);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    for (let j: usize = VECTOR; j < size - i; j += VECTOR) {
      const other = v128.load(part + j);
      let elements = v128.load(row0 + j);
      let first = multiplyAdd(factor0, elements, v128.load(target + j));
      sum0 = multiplyAdd(elements, other, sum0);
      elements = v128.load(row1 + j);
      let second = f32x4.mul(factor1, elements);
      sum1 = multiplyAdd(elements, other, sum1);
      elements = v128.load(row2 + j);
      first = multiplyAdd(factor2, elements, first);
      sum2 = multiplyAdd(elements, other, sum2);
      elements = v128.load(row3 + j);
      second = multiplyAdd(factor3, elements, second);
      sum3 = multiplyAdd(elements, other, sum3);
      v128.store(target + j, f32x4.add(first, second));
    }
    let first = multiplyAdd(factor0, v128.load(row0), v128.load(target));
    let second = f32x4.mul(factor1, v128.load(row1));
    first = multiplyAdd(factor2, v128.load(row2), first);
    second = multiplyAdd(factor3, v128.load(row3), second);
    v128.store(target, f32x4.add(f32x4.add(first, second), sumLanesOfFour(sum0, sum1, sum2, sum3)));
  }
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
