import { describe, expect, it } from 'vitest';
import { buildAliasTable, ItemSampler } from '../../synthetic/ratings/item-sampler.ts';
import { purposes, RandomStream } from '../../synthetic/ratings/random-stream.ts';

describe('the item sampler', () => {
  const weights = Float64Array.of(1, 2, 4, 8, 16, 32);
  const random = new RandomStream(1, purposes.itemsOfUser);

  /** P(each item is among the first `count` of successive draws without replacement). */
  function inclusion(
    count: number,
    taken: readonly number[] = [],
    probability = 1,
    into = new Float64Array(6),
  ): Float64Array {
    for (const item of taken) if (taken.length === count) into[item] += probability;
    if (taken.length === count) return into;
    const left = weights.reduce((sum, weight, item) => (taken.includes(item) ? sum : sum + weight), 0);
    weights.forEach((weight, item) => {
      if (!taken.includes(item)) inclusion(count, [...taken, item], (probability * weight) / left, into);
    });
    return into;
  }

  it.each([1, 3, 5])('takes %d of 6 by successive draws, although most requests end as a race', (count) => {
    const sampler = new ItemSampler({ weights, table: buildAliasTable(weights) });
    const drawn = new Int32Array(6);
    const hits = new Float64Array(6);
    const requests = 40_000;
    for (let request = 0; request < requests; request++) {
      sampler.sample(count, random.aim(request), drawn);
      for (const item of drawn.subarray(0, count)) hits[item]++;
    }
    const expected = inclusion(count);
    for (let item = 0; item < 6; item++)
      expect(Math.abs(hits[item] / requests - expected[item])).toBeLessThan(0.01);
  });

  it('ends when all of a steep catalogue is wanted', () => {
    const steep = Float64Array.from({ length: 3000 }, (_, rank) => (rank + 1) ** -4);
    const all = new Int32Array(3000);
    new ItemSampler({ weights: steep, table: buildAliasTable(steep) }).sample(3000, random.aim(0), all);
    expect(all.sort()).toEqual(Int32Array.from(steep, (_, item) => item));
  });
});
