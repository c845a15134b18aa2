/** The float64 version of CG without A takes the steps of the version that forms A. */
import { expect, it } from 'vitest';
import {
  explicitProducts,
  freeBiasedGradients,
  freeGradients,
  gramTimes,
  implicitProducts,
} from '../../../cpu/reference/matrix-free.ts';
import { gramMatrix, implicitEquations, normalEquations } from '../../../cpu/reference/normal-equations.ts';
import { conjugateGradient } from '../../../cpu/reference/solvers.ts';
import { biasedEquations, biasedGradients, shifted } from '../../../cpu/reference/update.ts';
import { CounterRandom } from '../../../engine/random.ts';

const [rank, stride, columns, steps] = [7, 8, 20, 3];
const random = new CounterRandom(3);
const numbers = (count: number, first: number) =>
  Float64Array.from({ length: count }, (_, k) => random.uniform(first + k) - 0.3);
const theta = { theta: numbers(columns * stride, 0), stride, rank };
const row = { indices: [3, 0, 19, 3, 8, 11], values: numbers(6, 1000).map((value) => 5 * value) };
const start = numbers(rank, 2000);

function expectClose(found: Float64Array, expected: Float64Array): void {
  expect(found).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(found[i]).toBeCloseTo(value, 9));
}

it('for explicit ratings', () => {
  const { matrix, bias } = normalEquations(theta.theta, stride, rank, row, 0.05);
  const shift = 0.05 * row.indices.length;
  expectClose(
    freeGradients(explicitProducts(theta, row, shift), start, steps),
    conjugateGradient(matrix, bias, start, steps),
  );
});

it('with biases', () => {
  const equations = shifted(biasedEquations(theta.theta, stride, rank, row), 0.4, 3);
  const weight = row.indices.length + 3;
  expectClose(
    freeBiasedGradients(theta, row, 0.4, weight, start, steps),
    biasedGradients(equations, start, steps),
  );
});

it('for implicit data', () => {
  const weights = { alpha: 2, base: 1 };
  const gram = gramMatrix(theta.theta, stride, rank, columns, 0.7);
  const { matrix, bias } = implicitEquations(gram, theta.theta, stride, rank, row, weights, 0.3);
  expectClose(
    freeGradients(implicitProducts(theta, row, weights, 0.3, gramTimes(theta, columns, 0.7)), start, steps),
    conjugateGradient(matrix, bias, start, steps),
  );
});
