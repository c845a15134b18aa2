import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, predictPair } from '../../cpu/reference/errors.ts';
import { rankListed as twin } from '../../cpu/reference/top-n.ts';
import { rankListed } from '../../cpu/tasks/rank-listed.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { isDeep, sampleSize } from '../support/deep.ts';
import { builds, ratingBlock, TestMemory } from './scope.ts';

/** Columns of each row: about `share` of all, listed ones apart from excluded ones. */
function listedAndExcluded(
  rows: number,
  columns: number,
  share: number,
  seed: number,
): { readonly listed: Partition; readonly exclude: Partition } {
  const random = new CounterRandom(seed);
  const chosen = (row: number, column: number) => random.uniform(row * columns + column);
  const block = (within: (draw: number) => boolean): Partition => {
    const lists = Array.from({ length: rows }, (_, row) =>
      Array.from({ length: columns }, (_, column) => column).filter((column) => within(chosen(row, column))),
    );
    const offsets = sharedArray(Int32Array, rows + 1);
    lists.forEach((list, row) => (offsets[row + 1] = offsets[row] + list.length));
    const indices = sharedArray(Uint32Array, offsets[rows]);
    indices.set(lists.flat());
    return {
      layout: 'rating-block',
      rows,
      columns: { offsets, indices, values: sharedArray(Float32Array, 0) },
    };
  };
  return { listed: block((draw) => draw < share), exclude: block((draw) => draw > 1 - share) };
}

function rounded(memory: TestMemory, rows: number, rank: number, seed: number, scale: number) {
  const matrix = memory.matrix(rows, rank, seed, scale);
  memory.values(matrix).forEach((value, k, all) => (all[k] = Math.round(value)));
  return matrix;
}

describe.each(builds)('rank-listed with %s', (build) => {
  it('gives the places and ties of its twin for any shape, exclusions left out', () => {
    const memory = new TestMemory(build, 16);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 11 }),
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(0, 0.1, 0.5),
        fc.constantFrom(1, 3, 8, 17),
        fc.boolean(),
        fc.constantFrom(undefined, 1, 5),
        fc.integer({ min: 0, max: 1000 }),
        (rows, columns, share, rank, excluding, depth, seed) => {
          memory.reset();
          // Small whole numbers: products are exact and ties are common.
          const [rowFactors, columnFactors] = [
            rounded(memory, rows, rank, seed, 1.5),
            rounded(memory, columns, rank, seed + 1, 1.5),
          ];
          const { listed, exclude } = listedAndExcluded(rows, columns, share, seed);
          const from = seed % rows;
          const scope = memory.scope(
            { from, to: rows, rank, ...(depth === undefined ? {} : { depth }) },
            excluding ? { listed, exclude } : { listed },
            { rowFactors, columnFactors },
          );
          const { offsets, indices } = listed.columns as unknown as Block;
          const excluded = exclude.columns as unknown as Block;
          const expected: number[] = [];
          for (let row = from; row < rows; row++) {
            const scores = Array.from({ length: columns }, (_, c) =>
              predictPair(memory.values(rowFactors), row, memory.values(columnFactors), c, rowFactors.stride),
            );
            const left = excluding
              ? excluded.indices.subarray(excluded.offsets[row], excluded.offsets[row + 1])
              : [];
            expected.push(...twin(scores, indices.subarray(offsets[row], offsets[row + 1]), new Set(left)));
          }
          const places = [...rankListed(scope).partitions!.places.columns.values] as number[];
          expect(upTo(places, depth)).toEqual(upTo(expected, depth));
        },
      ),
      { numRuns: sampleSize(80), seed: 4 },
    );
  });

  it('works over many tiles and groups of rows, with repeated exclusions', () => {
    const memory = new TestMemory(build);
    const [rowFactors, columnFactors] = [rounded(memory, 1100, 24, 1, 4), rounded(memory, 2500, 24, 2, 4)];
    const { listed, exclude } = listedAndExcluded(1100, 2500, 0.01, 3);
    const twice = ratingBlock(
      Array.from({ length: 1100 }, (_, row) => 2 * (offsetsOf(exclude)[row + 1] - offsetsOf(exclude)[row])),
      2500,
      1,
    );
    twice.columns.indices.forEach((_, k, all) => (all[k] = (exclude.columns.indices as Uint32Array)[k >> 1]));
    const scope = memory.scope(
      { from: 0, to: 1100, rank: 24 },
      { listed, exclude: twice },
      { rowFactors, columnFactors },
    );
    const places = rankListed(scope).partitions!.places.columns.values;
    const shallow = [
      ...rankListed({ ...scope, params: { ...scope.params, depth: 20 } }).partitions!.places.columns.values,
    ] as number[];
    expect(upTo(shallow, 20)).toEqual(upTo([...places] as number[], 20));
    const { offsets, indices } = listed.columns as unknown as Block;
    for (const row of [0, 511, 512, 1099]) {
      const scores = Array.from({ length: 2500 }, (_, c) =>
        predictPair(memory.values(rowFactors), row, memory.values(columnFactors), c, 24),
      );
      const left = new Set(
        (exclude.columns.indices as Uint32Array).subarray(
          offsetsOf(exclude)[row],
          offsetsOf(exclude)[row + 1],
        ),
      );
      expect([...places.subarray(2 * offsets[row], 2 * offsets[row + 1])]).toEqual(
        twin(scores, indices.subarray(offsets[row], offsets[row + 1]), left),
      );
    }
  });

  // It takes seconds: with one build in `npm test`.
  it.runIf(isDeep || build === builds[0])('ranks a row with more columns than a group holds', () => {
    const memory = new TestMemory(build);
    const columns = 66_000;
    const [rowFactors, columnFactors] = [rounded(memory, 2, 1, 1, 2), rounded(memory, columns, 1, 2, 300)];
    memory.values(rowFactors).fill(1);
    const { listed } = listedAndExcluded(2, columns, 1.1, 3);
    const places = rankListed(
      memory.scope({ from: 0, to: 2, rank: 1 }, { listed }, { rowFactors, columnFactors }),
    ).partitions!.places.columns.values;
    const values = memory.values(columnFactors);
    const counts = new Map<number, number>();
    const scores = Array.from({ length: columns }, (_, column) => values[column * columnFactors.stride]);
    for (const score of scores) counts.set(score, (counts.get(score) ?? 0) + 1);
    let above = 0;
    const ranks = new Map<number, [number, number]>();
    for (const [score, tied] of [...counts].sort(([left], [right]) => right - left)) {
      ranks.set(score, [above, tied]);
      above += tied;
    }
    expect([...places]).toEqual([...scores, ...scores].flatMap((score) => ranks.get(score)!));
  });

  it('counts a column before a neighbour without a score', () => {
    const memory = new TestMemory(build, 16);
    const [rowFactors, columnFactors] = [rounded(memory, 1, 1, 1, 2), rounded(memory, 30, 1, 2, 3)];
    memory.values(rowFactors).fill(1);
    const values = memory.values(columnFactors);
    // The bound of columns 0 to 7 has to be above the listed column's score in spite of the NaN.
    Array.from({ length: 30 }, (_, column) => (values[column * columnFactors.stride] = 1));
    values[0] = 100;
    values[columnFactors.stride] = NaN;
    values[10 * columnFactors.stride] = 50;
    const listed: Partition = {
      layout: 'rating-block',
      rows: 1,
      columns: {
        offsets: Int32Array.of(0, 1),
        indices: Uint32Array.of(10),
        values: new Float32Array(1),
      },
    };
    const places = rankListed(
      memory.scope({ from: 0, to: 1, rank: 1 }, { listed }, { rowFactors, columnFactors }),
    ).partitions!.places.columns.values;
    expect([...places]).toEqual([1, 1]);
  });

  it('puts a column without a score behind all others', () => {
    const memory = new TestMemory(build, 16);
    const [rowFactors, columnFactors] = [rounded(memory, 1, 2, 1, 2), rounded(memory, 30, 2, 2, 3)];
    memory.values(rowFactors).fill(1);
    const values = memory.values(columnFactors);
    values[5 * columnFactors.stride] = NaN;
    values[20 * columnFactors.stride] = -Infinity;
    const { listed } = listedAndExcluded(1, 30, 1.1, 3);
    const places = rankListed(
      memory.scope({ from: 0, to: 1, rank: 2 }, { listed }, { rowFactors, columnFactors }),
    ).partitions!.places.columns.values;
    expect([...places.subarray(10, 12), ...places.subarray(40, 42)]).toEqual([28, 0, 28, 0]);
    const expected = Array.from({ length: 30 }, (_, column) => {
      const score = (one: number) =>
        values[one * columnFactors.stride] + values[one * columnFactors.stride + 1];
      const scored = Array.from({ length: 30 }, (_, one) => one).filter((one) => one !== 5 && one !== 20);
      if (!scored.includes(column)) return [28, 0];
      return [
        scored.filter((one) => score(one) > score(column)).length,
        scored.filter((one) => score(one) === score(column)).length,
      ];
    });
    expect([...places]).toEqual(expected.flat());
  });
});

/** Ranks and ties, where ranks from `depth` on may be any. */
function upTo(places: readonly number[], depth = Infinity): number[] {
  return places.map((value, k) => (places[k & ~1] < depth ? value : depth));
}

function offsetsOf({ columns }: Partition): Int32Array {
  return columns.offsets as Int32Array;
}
