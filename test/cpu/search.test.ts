/**
 * The search of one row at a time against top-n, which computes all scores: the same items and the same bits
 * of scores.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MatrixView } from '../../cpu/handler.ts';
import { prepareSearch, search } from '../../cpu/tasks/search/search.ts';
import { topN } from '../../cpu/tasks/top-n.ts';
import { CounterRandom } from '../../engine/random.ts';
import { indexShapes } from '../../operators/serving/search.ts';
import { sampleSize } from '../support/deep.ts';
import { builds, TestMemory } from './scope.ts';

const kinds = ['gaussian', 'trained', 'biases', 'whole', 'equal', 'zeros', 'huge'] as const;
type Kind = (typeof kinds)[number];

/** Vectors of a kind, columns x rank. */
function vectorsOf(kind: Kind, columns: number, rank: number, seed: number): Float32Array {
  const random = new CounterRandom(seed);
  const uniform = (i: number) => 2 * random.uniform(i) - 1;
  return Float32Array.from({ length: columns * rank }, (_, i) => {
    const [column, k] = [Math.floor(i / rank), i % rank];
    if (kind === 'equal') return k + 1;
    if (kind === 'zeros') return column % 3 === 0 ? uniform(i) : 0;
    if (kind === 'whole') return Math.round(2 * uniform(i));
    if (kind === 'huge') return 3e38 * uniform(i);
    if (kind === 'biases' && k === rank - 1) return 1;
    return kind === 'gaussian'
      ? uniform(i)
      : (0.3 + uniform(i)) * Math.exp(-5 * random.uniform(columns * rank + column));
  });
}

/** A memory with vectors in their searchable form, and as top-n takes them. */
function prepared(
  memory: TestMemory,
  vectors: Float32Array,
  columns: number,
  rank: number,
  normalized = false,
) {
  memory.reset();
  const matrices = Object.fromEntries(
    Object.entries(indexShapes(columns, rank)).map(([name, shape]): [string, MatrixView] => {
      const pointer = memory.allocate(4 * shape.rows * shape.stride);
      memory.floats(pointer, shape.rows * shape.stride).fill(Number.NaN);
      return [name, { pointer, ...shape }];
    }),
  );
  prepareSearch(
    memory.scope(
      { width: rank, rank, normalized },
      { vectors: { layout: 'vectors', rows: columns, columns: { values: vectors } } },
      matrices,
    ),
  );
  const find = (
    query: Float32Array,
    n: number,
    left: readonly number[] = [],
    allowed?: readonly number[],
    mask?: Uint8Array,
  ) => {
    const one = { query: Array.from(query), n, left, ...(allowed ? { allowed } : {}) };
    const masks = mask && { mask: { layout: 'item-mask', rows: columns, columns: { values: mask } } };
    const { rows, values } = search(memory.scope({ searches: [one, one] }, masks ?? {}, matrices));
    const [first, second] = values?.found ?? [];
    expect(second).toEqual(first);
    return { rows: rows / 2, ...first };
  };
  const all = (query: Float32Array, n: number, left: readonly number[], allowed?: readonly number[]) => {
    const rowFactors = memory.matrix(1, rank, 1);
    const columnFactors = memory.matrix(columns, rank, 1);
    memory.values(rowFactors).set(query);
    for (let column = 0; column < columns; column++)
      memory
        .values(columnFactors)
        .set(vectors.subarray(column * rank, (column + 1) * rank), column * columnFactors.stride);
    const excluded = Array.from({ length: columns }, (_, item) => item).filter(
      (item) => left.includes(item) || (allowed !== undefined && !allowed.includes(item)),
    );
    const exclude = {
      layout: 'rating-block',
      rows: 1,
      columns: {
        offsets: Int32Array.of(0, excluded.length),
        indices: Uint32Array.from(excluded),
        values: new Float32Array(0),
      },
    };
    const { items, scores } = topN(
      memory.scope({ from: 0, to: 1, rank, n }, { exclude }, { rowFactors, columnFactors }),
    ).partitions!.top.columns as { items: Uint32Array; scores: Float32Array };
    const found = [...items].filter((item) => item !== 0xffff_ffff);
    return { items: found, scores: [...scores].slice(0, found.length) };
  };
  return { find, all };
}

describe.each(builds)('a search with %s', (build) => {
  const memory = new TestMemory(build, 16);

  it('gives the items and scores of top-n, in every bit', () => {
    const lists = fc
      .uniqueArray(fc.nat(199), { maxLength: 60 })
      .map((list) => list.sort((left, right) => left - right));
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.integer({ min: 1, max: 200 }),
        fc.constantFrom(1, 3, 8, 17, 66),
        fc.constantFrom(1, 2, 10, 250),
        lists,
        fc.option(lists),
        fc.nat(1000),
        (kind, columns, rank, n, left, allowed, seed) => {
          const within = (list: readonly number[]) => list.filter((item) => item < columns);
          const { find, all } = prepared(memory, vectorsOf(kind, columns, rank, seed), columns, rank);
          for (const query of [
            vectorsOf(kind, 1, rank, seed + 1),
            vectorsOf('gaussian', 1, rank, seed + 2),
            new Float32Array(rank),
          ]) {
            const { rows: _rows, ...found } = find(
              query,
              n,
              within(left),
              allowed === null ? undefined : within(allowed),
            );
            expect(found).toEqual(
              all(query, n, within(left), allowed === null ? undefined : within(allowed)),
            );
            if (allowed === null) continue;
            const mask = Uint8Array.from({ length: columns }, (_, item) => Number(allowed.includes(item)));
            expect(find(query, n, within(left), undefined, mask)).toMatchObject(found);
          }
        },
      ),
      { numRuns: sampleSize(100), seed: 4 },
    );
  });

  it('of many columns stops where the rest is too near the mean, and the constant feature of biases does not keep it going', () => {
    const [columns, rank] = [3000, 9];
    const vectors = vectorsOf('biases', columns, rank, 3);
    const { find, all } = prepared(memory, vectors, columns, rank);
    const query = vectorsOf('gaussian', 1, rank, 5);
    query[rank - 1] = 40;
    const { rows, ...found } = find(query, 10);
    expect(found).toEqual(all(query, 10, []));
    expect(rows).toBeLessThan(columns / 2);
  });

  it('of unit vectors gives cosines; zeros have none', () => {
    const [columns, rank] = [500, 6];
    const vectors = vectorsOf('zeros', columns, rank, 8);
    const { find } = prepared(memory, vectors, columns, rank, true);
    const query = vectors.slice(0, rank);
    const length = Math.hypot(...query);
    const { items, scores } = find(
      query.map((value) => value / length),
      500,
    );
    expect(items[0]).toBe(0);
    expect(scores[0]).toBeCloseTo(1, 6);
    const dot = (item: number) => query.reduce((sum, value, k) => sum + value * vectors[item * rank + k], 0);
    for (const [k, item] of items.entries())
      expect(scores[k]).toBeCloseTo(
        item % 3 === 0
          ? dot(item) / (length * Math.hypot(...vectors.subarray(item * rank, (item + 1) * rank)))
          : 0,
        5,
      );
  });

  it('refuses lists that do not fit', () => {
    const { find } = prepared(memory, vectorsOf('gaussian', 10, 4, 1), 10, 4);
    expect(() =>
      find(
        new Float32Array(4),
        5,
        Array.from({ length: 4_300_000 }, () => 1),
      ),
    ).toThrow(/lists of 4300000 items are too long/);
  });
});
