import { describe, expect, it } from 'vitest';
import { shortestFloat32 } from '../../engine/numbers/half.ts';

describe('the shortest decimal of a float32', () => {
  it.each([19.1, 0.1, 4.5, 5, 0, -3.7, 1e-7, 123456.7, 16777216])('is %d as it was written', (value) => {
    expect(shortestFloat32(Math.fround(value))).toBe(value);
  });

  it('gives the same float32 for any bits', () => {
    const bits = Uint32Array.from({ length: 2000 }, (_, i) => (i * 2_654_435_761) >>> 0);
    const values = [...new Float32Array(bits.buffer)].filter((value) => Number.isFinite(value));
    for (const value of values) expect(Math.fround(shortestFloat32(value))).toBe(value);
  });

  it('leaves other numbers as they are', () => {
    expect([shortestFloat32(19.1), shortestFloat32(Number.NaN), shortestFloat32(Infinity)]).toEqual([
      19.1,
      Number.NaN,
      Infinity,
    ]);
  });
});
