import { afterEach, describe, expect, it } from 'vitest';
import { dataSetName } from '../../../engine/partition.ts';
import { ALS, type AlsOptions } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { RowSolver, chunkLimit, chunksOf } from '../../../operators/als/rows/row-solver.ts';
import { blockOf, emptyBlock } from '../../../operators/ratings/ratings.ts';
import { testRandom } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();
const { bytes } = chunkLimit;
afterEach(() => {
  chunkLimit.bytes = bytes;
});

const [ROWS, COLUMNS, RANK] = [53, 30, 6];

/** A block in which row u has 1 to 9 ratings. */
function ratings() {
  const random = testRandom(4);
  const made = emptyBlock(Int32Array.from({ length: ROWS }, (_, row) => 1 + (row % 9)));
  const block = blockOf({ name: dataSetName('chunks'), partition: 0, version: 0 }, made);
  for (let row = 0; row < ROWS; row++)
    for (let k = block.offsets[row]; k < block.offsets[row + 1]; k++) {
      block.indices[k] = (row + 3 * (k - block.offsets[row])) % COLUMNS;
      block.values[k] = 1 + 4 * random();
    }
  return block;
}

async function solved(options: AlsOptions): Promise<Float32Array[]> {
  const params = sizedParams(ALS.spark({ rank: RANK, seed: 2, ...options }).params, {
    users: ROWS,
    items: COLUMNS,
    ratings: 1,
  });
  const keys = { type: 'int32' as const, values: Int32Array.from({ length: ROWS }, (_, row) => 2 * row) };
  const solver = new RowSolver(ratings(), { keys, columns: COLUMNS, unit: 1 }, params, session.context());
  await solver.place();
  const random = testRandom(7);
  solver.fix(Float32Array.from({ length: COLUMNS * RANK }, () => random() - 0.5));
  const first = (await solver.solve(1, { fromZeros: true })).slice();
  const second = (await solver.solve(2, { fromZeros: false })).slice();
  await solver.forget();
  return [first, second];
}

describe('rows that are solved in chunks', () => {
  it.each([
    ['exactly', { solver: 'cholesky' }],
    ['by conjugate gradients', { solver: 'cg', cgSteps: 2 }],
  ] as const)('%s have the bits of rows that are solved together', async (_, options) => {
    const together = await solved(options);
    chunkLimit.bytes = 4 * 8 * 10;
    expect(chunksOf(ROWS, 8).map(({ to }) => to)).toEqual([10, 20, 30, 40, 50, 53]);
    expect(await solved(options)).toEqual(together);
    if (options.solver === 'cg') expect(together[1]).not.toEqual(together[0]);
  });
});
