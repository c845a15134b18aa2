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

  it('has the same bits by the kernel for many numbers and by the loop for few', () => {
    const random = new Uint32Array(20_003);
    for (let i = 0, state = 1; i < random.length; i++)
      random[i] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const values = new Float32Array(random.buffer);
    const few = Array.from({ length: Math.ceil(values.length / 50) }, (_, part) =>
      toHalf(values.subarray(50 * part, 50 * part + 50)),
    );
    const many = toHalf(values);
    expect([...many]).toEqual(few.flatMap((part) => [...part]));
    const all = Uint16Array.from({ length: 1 << 16 }, (_, half) => half);
    expect(fromHalves(all)).toEqual(Float32Array.from(all, fromHalf));
  });
});
