/**
 * Every rating of every row goes to one kernel, once: the lists of gpu/update, and the tiles of a tensor-core
 * workgroup.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tensorPlan, dealTiles } from '../../../gpu/equations/tensor-plan.ts';
import { dealRows, type Parts, type RowLimits } from '../../../gpu/update/deal-rows.ts';

const entriesOf = ({ entries, count }: Parts) =>
  Array.from({ length: count }, (_, i) => [...entries.subarray(4 * i, 4 * i + 4)]);

const rowLimits: fc.Arbitrary<RowLimits> = fc.record({
  short: fc.constantFrom(0, 32, 64),
  fused: fc.constantFrom(-1, 10, 100),
  part: fc.integer({ min: 1, max: 200 }),
  regions: fc.option(fc.record({ rows: fc.constantFrom(3, 50, 2 ** 32), least: fc.constantFrom(0, 100) }), {
    nil: undefined,
  }),
  ratedOnly: fc.boolean(),
  slots: fc.integer({ min: 2, max: 40 }),
});

describe('rows of a block', () => {
  it('are dealt to lists that hold every rating once, by their lengths', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 300 }), { minLength: 1, maxLength: 30 }),
        rowLimits,
        (lengths, limits) => {
          const offsets = Int32Array.from([
            0,
            ...lengths.map((_, row) => lengths.slice(0, row + 1).reduce((a, b) => a + b)),
          ]);
          const columns = Uint32Array.from(lengths.flatMap((length) => Array.from({ length }, (_, k) => k)));
          const dealt = dealRows(offsets, columns, 0, lengths.length, limits);
          const seen = new Uint8Array(columns.length);
          const rowsSeen: number[] = [];
          const see = (first: number, count: number) =>
            seen.subarray(first, first + count).forEach((_, i, part) => part[i]++);
          for (const list of [...dealt.short, dealt.fused]) {
            for (const [row, first, length] of entriesOf(list)) {
              expect([first, length]).toEqual([offsets[row], lengths[row]]);
              rowsSeen.push(row);
              see(first, length);
            }
          }
          for (const { longest, ...list } of dealt.short)
            for (const [, , length] of entriesOf(list)) expect(length).toBeLessThanOrEqual(longest);
          for (const { parts, rows, slots } of dealt.batches) {
            expect(slots).toBeLessThanOrEqual(limits.slots);
            const bySlot = new Map(
              entriesOf(parts).map(([row, first, length, slot]) => [slot, { row, first, length }]),
            );
            expect(bySlot.size).toBe(slots);
            for (const [row, firstSlot, length, count] of entriesOf(rows)) {
              rowsSeen.push(row);
              expect(length).toBe(lengths[row]);
              // Slots are in the row's order, so that sums always have the same order.
              let at = offsets[row];
              for (let slot = firstSlot; slot < firstSlot + count; slot++) {
                expect(bySlot.get(slot)).toMatchObject({ row, first: at });
                at += bySlot.get(slot)!.length;
                see(bySlot.get(slot)!.first, bySlot.get(slot)!.length);
              }
              expect(at).toBe(offsets[row + 1]);
            }
          }
          expect(rowsSeen.sort((a, b) => a - b)).toEqual(
            lengths.flatMap((length, row) => (length === 0 && limits.ratedOnly ? [] : [row])),
          );
          expect(seen.every((times) => times === 1)).toBe(true);
        },
      ),
    );
  });

  it('come by regions of θ, and the longest first', () => {
    const columns = Uint32Array.from([0, 1, 50, 51, 52, 99, 2, 3, 4, 60]);
    const { batches } = dealRows(Int32Array.of(0, 6, 10), columns, 0, 2, {
      short: 0,
      fused: -1,
      ratedOnly: false,
      part: 3,
      regions: { rows: 50, least: 0 },
      slots: 20,
    });
    expect(entriesOf(batches[0].parts)).toEqual(
      [
        [1, 6, 3, 2],
        [0, 0, 2, 0],
        [0, 2, 2, 1],
        [0, 4, 2, 2],
        [1, 9, 1, 4],
      ].map(([row, first, length]) => [row, first, length, expect.any(Number)]),
    );
    expect(entriesOf(batches[0].rows)).toEqual([
      [0, 0, 6, 3],
      [1, 3, 4, 2],
    ]);
  });

  it('are cut by regions only where they are long enough for them', () => {
    const columns = Uint32Array.from([0, 1, 50, 51, 52, 99, 2, 3, 4, 60]);
    const { batches } = dealRows(Int32Array.of(0, 6, 10), columns, 0, 2, {
      short: 0,
      fused: -1,
      ratedOnly: false,
      part: 3,
      regions: { rows: 50, least: 5 },
      slots: 20,
    });
    expect(entriesOf(batches[0].rows)).toEqual([
      [0, 0, 6, 3],
      [1, 3, 4, 2],
    ]);
    // The second row is cut into halves, not into three ratings and one.
    expect(entriesOf(batches[0].parts).filter(([row]) => row === 1)).toEqual([
      [1, 6, 2, 3],
      [1, 8, 2, 4],
    ]);
  });
});

describe('tiles of A', () => {
  it.each([1, 8, 16, 40, 64, 100, 112, 128, 200, 256])(
    'of rank %i are summed once each, and all go to the registers',
    (rank) => {
      const { tiles, ratingRow, deals, phases, subgroups } = tensorPlan(rank);
      const wanted = (tiles * (tiles + 1)) / 2 + (ratingRow ? tiles : 0);
      const dealt = deals.flatMap((deal) => deal.tiles.map(({ row, column }) => `${row} ${column}`));
      expect(new Set(dealt).size).toBe(wanted);
      expect(dealt).toHaveLength(wanted);
      expect(Math.max(...deals.map((deal) => deal.tiles.length))).toBe(Math.ceil(wanted / subgroups));
      for (const { tiles: own, lefts, rights } of deals)
        for (const { row, column } of own)
          expect([lefts.includes(row), rights.includes(column)]).toEqual([true, true]);
      expect(phases.flatMap(({ stores }) => stores.flatMap((store) => store.tiles))).toHaveLength(wanted);
      for (const { stores } of phases) {
        const places = stores.flatMap((store) => store.tiles.map(({ place }) => place));
        expect(new Set(places).size).toBe(places.length);
        expect(Math.max(...places)).toBeLessThan(tiles);
      }
    },
  );

  it('are dealt as they always were, so that kernels keep their texts', () => {
    const tiles = Array.from({ length: 28 }, (_, i) => ({
      row: Math.floor((Math.sqrt(8 * i + 1) - 1) / 2),
      column: i,
    })).map(({ row, column }) => ({ row, column: column - (row * (row + 1)) / 2 }));
    const dealt = dealTiles(tiles, 4).map((own) =>
      own.map(({ row, column }) => `${row},${column}`).join(' '),
    );
    expect(dealt).toEqual([
      '2,2 5,1 5,2 5,3 5,5 6,3 6,5',
      '4,0 4,4 5,0 5,4 6,0 6,4 6,6',
      '3,2 3,3 4,1 4,2 4,3 6,1 6,2',
      '0,0 1,0 1,1 2,0 2,1 3,0 3,1',
    ]);
  });
});
