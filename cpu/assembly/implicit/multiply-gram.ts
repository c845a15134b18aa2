/** Products with the Gram matrix G, of which both triangles are stored. */
import { VECTOR, multiplyAdd, sumLanesOfFour } from '../simd';
import { clear } from '../vectors';

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
