import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tileBatches, batchOrder, dealColumns } from '../../../gpu/sgd/sgd-tiles.ts';

describe('the order of batches', () => {
  const orderOf = (batches: number, { multiplier, offset }: ReturnType<typeof batchOrder>) =>
    Array.from({ length: batches }, (_, at) => (at * multiplier + offset) % batches);

  it('has every batch once, for the number it was drawn for and any smaller one, in 32 bits', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 3000 }),
        fc.nat(2 ** 32 - 1),
        fc.nat(100),
        (one, other, seed, epoch) => {
          const [batches, most] = [Math.min(one, other), Math.max(one, other)];
          const order = batchOrder(most, seed, epoch);
          expect(new Set(orderOf(batches, order)).size).toBe(batches);
          expect((most - 1) * order.multiplier + order.offset).toBeLessThan(2 ** 32);
        },
      ),
    );
  });

  it.each([0, 1, 60_000, 65_519, 65_536, 1_000_000])('is one of %i too', (batches) => {
    const order = batchOrder(batches, 1, 1);
    expect(new Set(orderOf(batches, order)).size).toBe(batches);
    expect((batches - 1) * order.multiplier + order.offset).toBeLessThan(2 ** 32);
  });

  it('is a function of seed and epoch', () => {
    expect(batchOrder(500, 1, 2)).toEqual(batchOrder(500, 1, 2));
    expect(batchOrder(500, 1, 3)).not.toEqual(batchOrder(500, 1, 2));
    expect(batchOrder(500, 2, 2)).not.toEqual(batchOrder(500, 1, 2));
  });

  it('has the same number of batches for every team', () => {
    for (const largest of [0, 1, 1024, 1_000_000])
      expect(tileBatches(largest, 0, { threads: 1024, lanes: 8 }) % 128).toBe(0);
    expect(tileBatches(1_000_000, 0, { threads: 1024, lanes: 8 })).toBe(1024);
  });
});

describe('columns that are dealt to tiles', () => {
  const countsOf = (indices: Uint32Array, columns: number) => {
    const counts = new Uint32Array(columns);
    for (const column of indices) counts[column]++;
    return counts;
  };
  const problem = fc.record({
    columns: fc.integer({ min: 1, max: 120 }),
    tiles: fc.integer({ min: 1, max: 20 }),
    indices: fc.array(fc.nat(119), { maxLength: 400 }),
  });

  it('are each in one place, whose tile begins where the ones before it end', () => {
    fc.assert(
      fc.property(problem, ({ columns, tiles, indices }) => {
        const known = Uint32Array.from(indices, (column) => column % columns);
        const dealt = dealColumns(countsOf(known, columns), tiles);
        expect(dealt.places).toBe(Math.ceil(columns / tiles));
        const placed = Array.from(dealt.columns).filter((column) => column !== 0xffff_ffff);
        expect(placed.toSorted((left, right) => left - right)).toEqual(
          Array.from({ length: columns }, (_, column) => column),
        );
        const counts = Array.from({ length: tiles }, () => 0);
        for (const column of known) counts[dealt.placeOf[column] & 0xffff]++;
        dealt.placeOf.forEach((place, column) =>
          expect(dealt.columns[(place & 0xffff) * dealt.places + (place >>> 16)]).toBe(column),
        );
        expect(Array.from(dealt.starts.subarray(1), (start, tile) => start - dealt.starts[tile])).toEqual(
          counts,
        );
        expect(dealt.largest).toBe(Math.max(...counts));
      }),
    );
  });

  it('balance ratings: two tiles differ by no more than the most popular column', () => {
    fc.assert(
      fc.property(problem, ({ columns, tiles, indices }) => {
        const known = Uint32Array.from(indices, (column) => (column * column) % columns);
        const { starts } = dealColumns(countsOf(known, columns), tiles);
        const totals = Array.from(starts.subarray(1), (start, tile) => start - starts[tile]);
        const most = Math.max(
          ...Array.from({ length: columns }, (_, column) => known.filter((one) => one === column).length),
        );
        expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(most);
      }),
    );
  });
});
