import { describe, expect, it } from 'vitest';
import { blocksOfIds, outRows } from '../../api/worker/out-rows.ts';

const int32 = (...values: number[]) => ({ type: 'int32' as const, values: Int32Array.from(values) });
const int64 = (...values: bigint[]) => ({
  type: 'int64' as const,
  halves: new Int32Array(BigInt64Array.from(values).buffer),
});

describe('the block of an id', () => {
  // RatingEncoderTest.java has the same numbers.
  it('is the one to which the plugin sends its ratings', () => {
    const ids = [0, 1, 2, 3, 100, -1, -7, 1_000_000, 2_147_483_647, -2_147_483_648];
    expect([...blocksOfIds(int32(...ids), 3)]).toEqual([0, 2, 2, 2, 0, 0, 0, 2, 2, 2]);
    expect([...blocksOfIds(int32(...ids), 256)]).toEqual([0, 223, 191, 95, 115, 222, 222, 122, 222, 0]);
  });

  it('is the same for int32 and int64', () => {
    const ids = [0, 1, -1, 77, -123_456, 2_147_483_647, -2_147_483_648];
    expect(blocksOfIds(int64(...ids.map(BigInt)), 7)).toEqual(blocksOfIds(int32(...ids), 7));
  });

  it('depends on the upper half of an int64', () => {
    const high = Array.from({ length: 64 }, (_, i) => (BigInt(i) << 32n) | 5n);
    expect(new Set(blocksOfIds(int64(...high), 7)).size).toBe(7);
  });

  it('is about evenly distributed, also for even ids', () => {
    const counts = new Uint32Array(4);
    for (const block of blocksOfIds(int32(...Array.from({ length: 4000 }, (_, i) => 2 * i)), 4))
      counts[block]++;
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });
});

describe('the rows that other blocks need', () => {
  const block = (rows: readonly (readonly number[])[]) => {
    const offsets = Int32Array.from([0, ...rows.map((_, i) => rows.slice(0, i + 1).flat().length)]);
    const indices = Uint32Array.from(rows.flat());
    const ref = { name: 'b', partition: 0, version: 0 };
    const values = new Float32Array(indices.length);
    return { ref, rows: rows.length, ratings: indices.length, offsets, indices, values };
  };

  it('are those with a rating in one of their columns, once and ascending', () => {
    const owners = Uint32Array.of(0, 1, 1, 3);
    const lists = outRows(block([[0, 1], [1, 2], [3], [0, 1, 2, 3]]), owners, 4);
    expect(lists.map((list) => [...list])).toEqual([[0, 3], [0, 1, 3], [], [2, 3]]);
  });

  it('are none for a block without ratings', () => {
    expect(outRows(block([]), new Uint32Array(0), 2).map((list) => list.length)).toEqual([0, 0]);
  });
});
