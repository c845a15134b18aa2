import { describe, expect, it } from 'vitest';
import { mapValues, ValueCounts, ValueIndex } from '../../../engine/numbers/value-index.ts';

const numbers = (count: number) => Float32Array.from({ length: count }, (_, k) => Math.sin(k) * 1000);

describe('distinct values', () => {
  it('are counted, and come in ascending order whatever order they came in', () => {
    const counts = new ValueCounts();
    counts.add(Float32Array.of(3, -1, 3, 0.5));
    counts.add(Float32Array.of(-1, 3));
    expect(counts.sorted()).toEqual([
      [-1, 2],
      [0.5, 1],
      [3, 3],
    ]);
  });

  it('keep their numbers when there are no more, and others have none', () => {
    const [index, bits] = [new ValueIndex(), new Int32Array(70_000).map((_, k) => Math.imul(k, 7919))];
    const found = Array.from(bits, (one) => index.numberOf(one));
    expect(found.slice(0, 65_536)).toEqual(Array.from({ length: 65_536 }, (_, k) => k));
    expect(new Set(found.slice(65_536))).toEqual(new Set([-1]));
    expect(index.numberOf(bits[65_535])).toBe(65_535);
    const counts = new ValueCounts();
    counts.add(numbers(70_000));
    expect(counts.sorted()).toBeUndefined();
  });
});

describe('mapValues', () => {
  it.each([10, 100_000])('maps each value as the function does, in place too, %d values', (count) => {
    const values = numbers(count);
    const expected = Float32Array.from(values, (value) => value * 2 + 1);
    const target = new Float32Array(count);
    mapValues(values, target, (value) => value * 2 + 1);
    expect(target).toEqual(expected);
    mapValues(values, values, (value) => value * 2 + 1);
    expect(values).toEqual(expected);
  });

  it('computes a repeated value once', () => {
    let calls = 0;
    mapValues(new Float32Array(5000).fill(7), new Float32Array(5000), () => ++calls);
    expect(calls).toBe(1);
  });
});
