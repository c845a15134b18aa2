import { describe, expect, it } from 'vitest';
import { rotation } from '../../cpu/tasks/lists/list-vectors.ts';
import { CounterRandom } from '../../engine/random.ts';

const product = (left: Float32Array, right: Float32Array) =>
  left.reduce((sum, value, k) => sum + value * right[k], 0);

describe('the rotation of differences', () => {
  it.each([1, 2, 3, 12, 34, 64, 100])('keeps products, at rank %i', (rank) => {
    const random = new CounterRandom(rank);
    const numbers = (from: number) =>
      Float32Array.from({ length: rank }, (_, k) => random.uniform(from + k) - 0.5);
    const rotate = rotation(rank);
    for (let pair = 0; pair < 20; pair++) {
      const [left, right] = [numbers(2 * pair * rank), numbers((2 * pair + 1) * rank)];
      const expected = product(left, right);
      rotate(left);
      rotate(right);
      expect(product(left, right)).toBeCloseTo(expected, 5);
    }
  });

  it.each([12, 34, 66, 100])('distributes each feature over all numbers, at rank %i', (rank) => {
    const rotate = rotation(rank);
    for (let feature = 0; feature < rank; feature++) {
      const one = new Float32Array(rank);
      one[feature] = 1;
      rotate(one);
      expect(Math.max(...one.map(Math.abs))).toBeLessThan(0.8);
    }
  });
});
