import { describe, expect, it } from 'vitest';
import { fromHalf, fromHalves, roundToHalf, toHalf } from '../../engine/numbers/half.ts';

const INFINITE = 0x7c00;

/** Numbers around each pair of adjacent positive float16 numbers, and the bits to which they round. */
function aroundMidpoints(): { readonly numbers: Float32Array; readonly bits: Uint16Array } {
  const numbers = new Float32Array(4 * INFINITE);
  const bits = new Uint16Array(numbers.length);
  for (let half = 0; half < INFINITE; half++) {
    const from = fromHalf(half);
    const to = half + 1 === INFINITE ? 65_536 : fromHalf(half + 1);
    const middle = from + (to - from) / 2;
    const apart = (to - from) / 1024;
    numbers.set([from, middle - apart, middle, middle + apart], 4 * half);
    bits.set([half, half, half + (half & 1), half + 1], 4 * half);
  }
  return { numbers, bits };
}

describe('float16', () => {
  const { numbers, bits } = aroundMidpoints();
  const negative = numbers.map((value) => -value);

  it('is the nearest one, of two the even one, over the whole range', () => {
    expect(toHalf(numbers)).toEqual(bits);
    expect(toHalf(negative)).toEqual(bits.map((half) => half | 0x8000));
  });

  it('has infinite and no numbers', () => {
    expect([...fromHalves(toHalf(Float32Array.of(1e6, -Infinity, NaN)))]).toEqual([Infinity, -Infinity, NaN]);
  });

  it('in place is the same as there and back', () => {
    for (const values of [numbers, negative, Float32Array.of(1e6, -Infinity, NaN, -0)]) {
      const rounded = values.slice();
      const halves = new Uint16Array(values.length);
      roundToHalf(rounded, halves);
      expect(halves).toEqual(toHalf(values));
      expect(rounded).toEqual(fromHalves(halves));
    }
  });
});
