import { describe, expect, it } from 'vitest';
import { drawRow } from '../../cpu/reference/draw.ts';
import { initialize } from '../../cpu/tasks/initialize.ts';
import { mix32 } from '../../engine/random.ts';
import { builds, norm, TestMemory } from './scope.ts';

describe.each(builds)('the task initialize with %s', (build) => {
  it('initialize draws unit rows that depend on seed and key alone', () => {
    const memory = new TestMemory(build);
    const count = 300;
    const low = Uint32Array.from({ length: count }, (_, k) => k);
    const keys = { layout: 'key-hashes', rows: count, columns: { low, high: new Uint32Array(count) } };
    const draw = (seed: number, rank: number, from: number, to: number, source = keys) => {
      const factors = memory.matrix(count, rank, 9);
      initialize(memory.scope({ from, to, rank, seed }, { keys: source }, { factors }));
      return { ...factors, values: memory.values(factors) };
    };
    for (const rank of [1, 7, 64]) {
      const all = draw(1, rank, 0, count);
      const { stride } = all;
      for (let row = 0; row < count; row++)
        expect(Math.abs(norm(all.values.subarray(row * stride, (row + 1) * stride)) - 1)).toBeLessThan(1e-6);
      const part = draw(1, rank, 100, 200);
      expect(part.values.subarray(100 * stride, 200 * stride)).toEqual(
        all.values.subarray(100 * stride, 200 * stride),
      );
      const reversed = { ...keys, columns: { ...keys.columns, low: low.toReversed() } };
      expect(draw(1, rank, 0, count, reversed).values.subarray(0, stride)).toEqual(
        all.values.subarray((count - 1) * stride, count * stride),
      );
    }
    expect(draw(2, 64, 0, count).values).not.toEqual(draw(1, 64, 0, count).values);
    // The elements of Gaussian unit rows have mean 0 and variance 1 / rank.
    const { values } = draw(1, 64, 0, count);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(4 / Math.sqrt(64 * values.length));
  });

  it.each([1, 2, 3, 4, 5, 7, 64, 127])(
    'initialize draws the rows of its twin at rank %i, to a matrix and to host memory, with zeros and a 1 beside them',
    (rank) => {
      const memory = new TestMemory(build);
      const [count, seed, first] = [50, 3, 2];
      const hashes = (seed32: number) => Uint32Array.from({ length: count }, (_, row) => mix32(row, seed32));
      const keys = { layout: 'key-hashes', rows: count, columns: { low: hashes(1), high: hashes(2) } };
      for (const { nonnegative, norm, shift } of [
        { nonnegative: false, norm: 1, shift: 0 },
        { nonnegative: true, norm: 2.5, shift: 0.25 },
      ]) {
        const params = { from: 0, to: count, rank, seed, nonnegative, norm, shift, first, oneAt: 1 };
        const factors = memory.matrix(count, rank + 3, 9);
        initialize(memory.scope(params, { keys }, { factors }));
        const values = memory.values(factors);
        const inHost = new Float32Array(count * factors.stride).fill(9);
        initialize(
          memory.scope(
            params,
            { keys, factors: { layout: 'factors', rows: count, columns: { values: inHost } } },
            {},
          ),
        );
        expect(inHost).toEqual(values.slice(0, inHost.length));
        for (let row = 0; row < count; row++) {
          const drawn = values.subarray(row * factors.stride, (row + 1) * factors.stride);
          const twin = drawRow(
            keys.columns.low[row] ^ mix32(seed, 1),
            keys.columns.high[row] ^ mix32(seed, 2),
            rank,
            { norm, shift, absolute: nonnegative },
          );
          for (let k = 0; k < rank; k++)
            expect(Math.abs(drawn[first + k] - twin[k])).toBeLessThanOrEqual(2 ** -23 * (norm + shift));
          expect([...drawn.subarray(0, first), ...drawn.subarray(first + rank)]).toEqual([
            0,
            1,
            ...Array<number>(factors.stride - first - rank).fill(0),
          ]);
        }
      }
    },
  );
});
