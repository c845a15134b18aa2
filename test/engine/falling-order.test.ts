import { expect, it } from 'vitest';
import { fallingOrder } from '../../engine/numbers/falling-order.ts';
import { floatClasses } from '../support/float-classes.ts';

it('orders numbers >= 0 of every class of float32, ties by position', () => {
  const half = floatClasses.length / 2;
  // 7 and the number of positions have no common factor.
  const values = Float32Array.from({ length: 2 * half }, (_, i) => floatClasses[(7 * i) % half]);
  values[5] = Number.POSITIVE_INFINITY;
  const expected = [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
  expect([...fallingOrder(values)]).toEqual(expected);
});
