import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Holdings } from '../../../engine/run/holdings.ts';
import {
  blockOf,
  ofParts,
  partOfBlock,
  type RatingBlock,
  ratingsOf,
  rowsOfBlock,
} from '../../../operators/ratings/ratings.ts';
import { cutBlocks } from '../../../operators/sgd/data/layout.ts';
import { sampleSize } from '../../support/deep.ts';
import { blockOfRows } from '../../support/steps/small-problems.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const COLUMNS = 30;

/** [row, column, value] of all ratings. */
function entries({ rows, offsets, indices, values }: RatingBlock): number[][] {
  const all: number[][] = [];
  for (let row = 0; row < rows; row++)
    for (let k = offsets[row]; k < offsets[row + 1]; k++) all.push([row, indices[k], values[k]]);
  return all;
}

function rangesOf(cuts: readonly number[], end: number) {
  const starts = [0, ...cuts.filter((cut) => cut < end)].sort((left, right) => left - right);
  return starts.map((from, at) => ({ from, to: starts[at + 1] ?? end }));
}

const row = fc
  .uniqueArray(fc.nat(COLUMNS - 1), { maxLength: 20 })
  .map((columns) => columns.sort((left, right) => left - right));
const cutsOf = (end: number) => fc.uniqueArray(fc.integer({ min: 1, max: end - 1 }), { maxLength: 5 });

it('every rating is in the block of its bands, in one block of ratings as in parts', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 6, maxLength: 12 }),
      cutsOf(6),
      cutsOf(COLUMNS),
      fc.boolean(),
      async (lists, rowCuts, columnCuts, local) => {
        const block = blockOfRows(lists);
        const bands = { rows: rangesOf(rowCuts, lists.length), columns: rangesOf(columnCuts, COLUMNS) };
        const parts = bands.rows.map(({ from, to }, partition) =>
          partOfBlock(from, rowsOfBlock(block, from, to, { name: 'parts', partition, version: 0 })),
        );
        await Holdings.within(session.context(), async (ctx) => {
          for (const ratings of [ratingsOf(block), ofParts(parts)]) {
            const blocks = await cutBlocks(ratings, bands, local, ctx);
            bands.rows.forEach((rows, r) =>
              bands.columns.forEach((columns, c) => {
                const { ref, partition } = blocks[r][c];
                const first = local ? columns.from : 0;
                expect(
                  entries(blockOf(ref, partition)).map(([u, v, value]) => [u + rows.from, v + first, value]),
                ).toEqual(
                  entries(block).filter(
                    ([u, v]) => u >= rows.from && u < rows.to && v >= columns.from && v < columns.to,
                  ),
                );
              }),
            );
          }
        });
      },
    ),
    { numRuns: sampleSize(15) },
  );
});
