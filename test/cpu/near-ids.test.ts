import { describe, expect, it } from 'vitest';
import { areFinite, numberColumn, TABLE, WINDOW } from '../../cpu/tasks/numbering/near-keys.ts';
import { countIds, rankIds } from '../../cpu/tasks/numbering/number-keys.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { isCounted } from '../../engine/keys/tables/make-key-table.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { everyNth } from '../support/deep.ts';
import { builds, TestMemory } from './scope.ts';

const random = new CounterRandom(7);

/** Ids in a range, including both ends. */
function idsBetween(least: number, greatest: number, rows: number): Int32Array {
  const ids = Int32Array.from({ length: rows }, (_, row) => least + random.below(row, greatest - least + 1));
  [ids[0], ids[rows - 1]] = [greatest, least];
  return ids;
}

function countsOf(codes: Iterable<number>, entries: number, shift = 0): Int32Array {
  const counts = new Int32Array(entries);
  for (const code of codes) if (code + shift >= 0 && code + shift < entries) counts[code + shift]++;
  return counts;
}

function same(left: Int32Array, right: Int32Array): boolean {
  return (
    left.length === right.length && Buffer.compare(Buffer.from(left.buffer), Buffer.from(right.buffer)) === 0
  );
}

const wide = (ids: Int32Array): KeyColumn => ({
  type: 'int64',
  halves: Int32Array.from({ length: 2 * ids.length }, (_, half) =>
    half % 2 === 0 ? ids[half >> 1] : ids[half >> 1] >> 31,
  ),
});

describe.each(everyNth(builds, 2))('near ids, %s', (build) => {
  const memory = new TestMemory(build);
  const scope = memory.scope({}, {}, {});

  it.each([
    [5, 5, 1],
    [1, 2, 2],
    [-3, 9, 7],
    [-4, 60, 33],
    [100, 90_000, WINDOW],
    [0, 40, WINDOW + 3],
    [-70_000, 9, 2 * WINDOW + 1],
    // A table of counts in two parts: the last part with one entry, and with more.
    [-1, TABLE - 1, 1_100_000],
    [0, 4_300_000, 1_100_000],
    // Too far apart to be counted in a table.
    [-(2 ** 31), 2 ** 31 - 1, 4],
    [0, 5_000, 3],
  ])(
    'from %i to %i of %i rows are distances from the least one, with their counts',
    (least, greatest, rows) => {
      const ids = idsBetween(least, greatest, rows);
      const inPlace = Int32Array.from(ids);
      for (const [column, place] of [
        [{ type: 'int32', values: ids }],
        [wide(ids)],
        [{ type: 'int32', values: inPlace }, new Uint32Array(inPlace.buffer)],
      ] as const) {
        const { codes, keys, summary } = numberColumn(scope, column, place ?? new Uint32Array(rows));
        expect(summary).toEqual({ range: [least, greatest] });
        expect(codes.every((code, row) => code === ids[row] - least)).toBe(true);
        const entries = isCounted(greatest - least + 1, rows) ? greatest - least + 1 : 0;
        expect((keys.columns.counts as Int32Array).length).toBe(entries);
        expect(same(keys.columns.counts as Int32Array, countsOf(codes, entries))).toBe(true);
      }
    },
  );

  it.each([[[1, 0, 2 ** 31, 0]], [[0, 1, 7, 0]], [[-5, 0, 7, 0]], [[5, -1, 7, 0]]])(
    'int64 of which one does not fit int32 are coded: %j',
    (halves) => {
      const { codes, keys, summary } = numberColumn(
        scope,
        { type: 'int64', halves: Int32Array.from([...halves, ...halves]) },
        new Uint32Array(4),
      );
      expect(summary).toEqual({ size: 2 });
      expect([...codes]).toEqual([0, 1, 0, 1]);
      expect([...(keys.columns.keyHalves as Int32Array)]).toEqual([...Int32Array.from(halves)]);
    },
  );

  it('stand beside ratings of which one that is not finite is found wherever it is', () => {
    const ratings = new Float32Array(WINDOW + 7).fill(-(2 ** 127) * (2 - 2 ** -23));
    expect(areFinite(scope, ratings)).toBe(true);
    for (const at of [0, 3, WINDOW - 1, WINDOW, WINDOW + 6]) {
      for (const other of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
        expect(areFinite(scope, ratings.with(at, other))).toBe(false);
    }
    expect(
      areFinite(scope, ratings.with(0, Number.POSITIVE_INFINITY).with(1, Number.NEGATIVE_INFINITY)),
    ).toBe(false);
    expect(areFinite(scope, new Float32Array(0))).toBe(true);
  });

  it('of chunks are counted together, from counts as from codes, by any slices', () => {
    const entries = TABLE + 150_000;
    const starts = [0, 120_003, TABLE - 7, 40];
    const chunks = starts.map((start, chunk) =>
      Uint32Array.from({ length: 90_000 + chunk }, (_, row) =>
        random.below(row * 8 + chunk, Math.min(100_001, entries - start)),
      ),
    );
    const expected = new Int32Array(entries);
    chunks.forEach((codes, chunk) => codes.forEach((code) => expected[code + starts[chunk]]++));
    const partitions: Record<string, Partition> = {
      counts: { layout: 'id-counts', rows: entries, columns: { counts: sharedArray(Int32Array, entries) } },
    };
    chunks.forEach((codes, chunk) => {
      if (chunk % 2 === 0)
        partitions[`codes.${chunk}`] = {
          layout: 'coded-pairs',
          rows: codes.length,
          columns: { items: codes },
        };
      else
        partitions[`keys.${chunk}`] = {
          layout: 'id-counts',
          rows: 100_001,
          columns: { counts: countsOf(codes, 100_001) },
        };
    });
    const counts = partitions.counts.columns.counts as Int32Array;
    for (const cuts of [
      [0, entries],
      [0, 1, 65_536, 120_004, 200_001, TABLE - 3, entries],
    ]) {
      counts.fill(-1);
      for (let cut = 1; cut < cuts.length; cut++)
        countIds(
          memory.scope(
            { from: cuts[cut - 1], to: cuts[cut], starts, side: 'items' as const },
            partitions,
            {},
          ),
        );
      expect(same(counts, expected)).toBe(true);
    }
  });

  it.each([
    [1, 2],
    [9, 3],
    [WINDOW, 2],
    [3 * WINDOW + 5, 40],
  ])('that occur get positions in their order, of %i entries', (entries, one) => {
    const counts = Int32Array.from({ length: entries }, (_, at) =>
      random.below(at, one) === 0 ? 0 : 1 + random.below(entries + at, 9),
    );
    const used = [...counts.keys()].filter((at) => counts[at] > 0);
    const run = (isWide: boolean) =>
      rankIds(
        memory.scope(
          { least: -50, wide: isWide },
          { counts: { layout: 'id-counts', rows: entries, columns: { counts } } },
          {},
        ),
      );
    const { partitions, values } = run(false) as {
      partitions: Record<'map' | 'keys', Partition>;
      values: { size: number };
    };
    expect(values.size).toBe(used.length);
    expect(
      same(
        partitions.keys.columns.keyValues as Int32Array,
        Int32Array.from(used, (at) => at - 50),
      ),
    ).toBe(true);
    expect(
      same(
        partitions.keys.columns.counts as Int32Array,
        Int32Array.from(used, (at) => counts[at]),
      ),
    ).toBe(true);
    const map = partitions.map.columns.map as Uint32Array;
    expect(map.length).toBe(entries);
    expect(used.every((at, position) => map[at] === position)).toBe(true);
    expect([...(run(true).partitions as typeof partitions).keys.columns.keyHalves.subarray(0, 2)]).toEqual(
      used.length > 0 ? [used[0] - 50, (used[0] - 50) >> 31] : [],
    );
  });
});
