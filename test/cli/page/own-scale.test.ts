/** Scales on which the course of values is seen. */
import { describe, expect, it } from 'vitest';
import { ownScale } from '../../../cli/page/sections/training.ts';

describe('a scale of its own', () => {
  it('leaves out a first value and rules that would flatten the others', () => {
    const { domain, has } = ownScale(
      [9, 0.9, 0.88, 0.87],
      [
        { name: 'the mean', value: 1.4 },
        { name: 'damped means', value: 0.92 },
      ],
    );
    expect(has(9)).toBe(false);
    expect(has(1.4)).toBe(false);
    expect([0.9, 0.88, 0.87, 0.92].map(has)).toEqual([true, true, true, true]);
    expect(domain[0]).toBeGreaterThan(0.8);
    expect(domain[1]).toBeLessThan(1);
  });

  it('has all of a few values, and a first one near the others', () => {
    expect([9, 0.9, 0.88].map(ownScale([9, 0.9, 0.88]).has)).toEqual([true, true, true]);
    expect(ownScale([0.95, 0.9, 0.88, 0.87]).has(0.95)).toBe(true);
  });

  it('shows differences of a thousandth as small', () => {
    const [least, most] = ownScale([1.0001, 1.0002, 1.0001, 1.0003]).domain;
    expect(most - least).toBeGreaterThan(0.009);
  });

  it.each([[[3]], [[0, 0, 0, 0]], [[0, 5e-324]], [[-2, -1]]])(
    'has a range for %j that a chart can divide',
    (values) => {
      const {
        domain: [least, most],
        has,
      } = ownScale(values);
      expect(most - least).toBeGreaterThan(1e-9);
      expect(values.every(has)).toBe(true);
    },
  );
});
