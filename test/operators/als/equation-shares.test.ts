import { describe, expect, it } from 'vitest';
import { columnsByOwner } from '../../../operators/als/rows/equation-shares.ts';
import type { RatingBlock } from '../../../operators/ratings/ratings.ts';

describe('the ratings of a block by column', () => {
  // rows {0: a, 2: b}, {}, {0: c, 1: d, 2: e}
  const block: RatingBlock = {
    ref: { name: 'block', partition: 0, version: 0 },
    rows: 3,
    ratings: 5,
    offsets: Int32Array.of(0, 2, 2, 5),
    indices: Uint32Array.of(0, 2, 0, 1, 2),
    values: Float32Array.of(1, 2, 3, 4, 5),
  };

  it('are grouped by owner, with ascending rows', () => {
    const cut = columnsByOwner(block, Uint32Array.of(1, 0, 1), 3);
    expect([...cut.columns]).toEqual([1, 0, 2]);
    expect([...cut.starts]).toEqual([0, 1, 3, 3]);
    expect([...cut.block.offsets]).toEqual([0, 1, 3, 5]);
    expect([...cut.block.indices]).toEqual([2, 0, 2, 0, 2]);
    expect([...cut.block.values]).toEqual([4, 1, 3, 2, 5]);
  });

  it('may be none', () => {
    const none = { ...block, rows: 0, ratings: 0, offsets: Int32Array.of(0) };
    const cut = columnsByOwner(none, new Uint32Array(0), 2);
    expect(cut.block.rows).toBe(0);
    expect([...cut.starts]).toEqual([0, 0, 0]);
  });
});
