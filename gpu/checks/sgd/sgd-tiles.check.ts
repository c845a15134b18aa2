/**
 * Checks of SGD over tiles (groups of columns), against the same steps in float64 in the kernel's order. In
 * these problems no two teams of threads share a row or a column, so that the order of the teams makes no
 * difference.
 */
import type { Partition } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { batchOrder, sgdTilesKernel, tileBatches, tileLists } from '../../sgd/sgd-tiles.ts';
import { sgdTiles } from '../../sgd/epoch.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import {
  both,
  f16,
  f32,
  randomSides,
  sourcesOf,
  type Rating,
  STEP_RATES,
  stepCheck,
  stepError,
  steppedSides,
  type StepShape,
  stepShapes,
} from '../support/sgd-steps.ts';
import { blockOf } from '../../../operators/tasks/sample-inputs.ts';
import { openTask } from '../support/run-kernel.ts';
import { dealtRatings, LEVEL } from './sgd-tile-scatter.check.ts';

type TilesShape = StepShape & { readonly arithmetic?: 'f32' | 'f16' };

interface Problem {
  readonly block: Partition;
  readonly columns: number;
  readonly tiles: number;
  readonly threads: number;
}

/**
 * A problem in which no row has ratings in two tiles. Every tile has two columns, and half of the tiles a
 * third one; the first column has `most` ratings.
 */
function ownRows(tiles: number, most: number, threads: number): Problem {
  const columns = 2 * tiles + Math.ceil(tiles / 2);
  const rowsEach = 24;
  const random = new CounterRandom(most, tiles);
  const ratings: Rating[] = [];
  for (let column = 0; column < columns; column++) {
    // As in the kernel's lists, columns are assigned to tiles by descending number of ratings: to the tiles
    // in ascending order, then in descending order, and so on.
    const [place, across] = [Math.floor(column / tiles), column % tiles];
    const tile = place % 2 === 0 ? across : tiles - 1 - across;
    for (let k = 0; k < most - column; k++)
      ratings.push({
        row: tile * rowsEach + ((5 * column + k) % rowsEach),
        column,
        value: LEVEL + 2 * random.uniform(ratings.length) - 1,
      });
  }
  return { block: blockByRow(ratings, tiles * rowsEach), columns, tiles, threads };
}

/** A problem with one rating for each row and each column: no two steps share factors, in any order. */
function matching(count: number, tiles: number, threads: number): Problem {
  const random = new CounterRandom(count);
  const ratings = Array.from({ length: count }, (_, row): Rating => ({
    row,
    column: (7 * row + 3) % count,
    value: LEVEL + 2 * random.uniform(row) - 1,
  }));
  return { block: blockByRow(ratings, count), columns: count, tiles, threads };
}

/** A problem in which some tiles have no ratings; each tile has one column. */
function emptyTiles(): Problem {
  const ratings = [3, 1, 1, 2].map((row, k): Rating => ({
    row,
    column: k === 3 ? 4 : 2,
    value: LEVEL + k / 4,
  }));
  return { block: blockByRow(ratings, 5), columns: 6, tiles: 6, threads: 4 };
}

/** The ratings as a block; inside a row they keep their order. */
function blockByRow(ratings: readonly Rating[], rows: number): Partition {
  const byRow = Array.from({ length: rows }, (_, row) => ratings.filter((rating) => rating.row === row));
  const values = byRow.flat();
  return blockOf(
    byRow.map((own) => own.map(({ column }) => column)),
    (k) => values[k].value,
  );
}

/** A tile's ratings in the order in which its teams of threads step them, one team after the other. */
function walkOf(
  ratings: readonly Rating[],
  tile: number,
  largest: number,
  threads: number,
  lanes: number,
): Rating[] {
  // The number of batches if the factors of all rows fit the cache.
  const batches = tileBatches(largest, 0, { threads, lanes });
  const { multiplier, offset } = batchOrder(batches, SEED, EPOCH);
  const start = (which: number) =>
    which * Math.floor(ratings.length / batches) + Math.min(which, ratings.length % batches);
  const walk: Rating[] = [];
  for (let team = 0; team < threads / lanes; team++) {
    for (let batch = team; batch < batches; batch += threads / lanes) {
      const which = (batch * multiplier + offset) % batches;
      const own = ratings.slice(start(which), start(which + 1));
      const first =
        own.length === 0 ? 0 : ((Math.imul(tile, 40503) + Math.imul(which, 9973)) >>> 0) % own.length;
      walk.push(...own.slice(first), ...own.slice(0, first));
    }
  }
  return walk;
}

const [SEED, EPOCH] = [11, 3];

async function checkSteps(
  gpu: Gpu,
  shape: TilesShape,
  { block, columns, tiles, threads }: Problem,
): Promise<{ error: number; limit: number }> {
  const { rank, precision, biases, adaptive, lanes, arithmetic = 'f32' } = shape;
  const start = randomSides(block.rows, columns, shape, rank);
  const outputs = randomSides(block.rows, columns, shape, rank + 1);
  const params = {
    rank,
    biases,
    adaptive,
    precision,
    arithmetic,
    lanes,
    tiles,
    threads,
    level: LEVEL,
    seed: SEED,
    epoch: EPOCH,
    ...STEP_RATES,
  };
  const opened = await openTask(gpu, params, { ...sourcesOf(start), block }, { outputs });
  try {
    const { rows } = await sgdTiles(opened.scope);
    const lists = await tileLists(gpu, opened.scope.block('block'), columns, tiles, LEVEL);
    const dealt = await dealtRatings(gpu, lists, block.columns.indices.length);
    const walks = dealt.map((ratings, tile) => walkOf(ratings, tile, lists.largest, threads, lanes));
    if (rows !== block.columns.indices.length || walks.flat().length !== rows)
      return { error: Infinity, limit: 0 };
    return await stepError(
      opened,
      start,
      steppedSides(start, walks, shape, arithmetic === 'f16' ? 'none' : 'rows'),
      shape,
    );
  } finally {
    opened.close();
  }
}

function checkOf({ arithmetic = 'f32', ...shape }: TilesShape, what: string, problem: Problem): KernelCheck {
  const computed = arithmetic === 'f16' ? 'float16 arithmetic, ' : '';
  return stepCheck(
    sgdTilesKernel,
    shape,
    `${computed}${what}`,
    { arithmetic, threads: problem.threads, places: Math.ceil(problem.columns / problem.tiles) },
    (gpu) => checkSteps(gpu, { ...shape, arithmetic }, problem),
  );
}

const halves: readonly TilesShape[] = [
  ...[1, 10, 32].map((rank) => ({ ...f16, rank })),
  ...[7, 64, 100, 128, 200].flatMap((rank) => [2, 4].map((lanes) => ({ ...f16, rank, lanes }))),
  { ...f16, ...both, rank: 30 },
  { ...f16, rank: 20, adaptive: true },
  ...[64, 100, 128].map((rank) => ({ ...f16, biases: true, rank, lanes: 4 })),
  ...[16, 32].map((rank) => ({ ...f16, biases: true, rank, lanes: rank / 16 })),
  { ...f16, ...both, rank: 128, lanes: 4 },
  { ...f16, ...both, rank: 98, lanes: 4 },
  { ...f16, rank: 256, lanes: 8 },
].map((shape): TilesShape => ({ ...shape, arithmetic: 'f16' }));

/**
 * Shapes of float16 rows that are an equal number of 16-byte groups for each thread and some words more (see
 * EvenRow), in float32 arithmetic.
 */
const tails: readonly TilesShape[] = [
  { rank: 128, lanes: 4 },
  { rank: 36, lanes: 4 },
  { rank: 64, lanes: 4 },
  { rank: 132, lanes: 16 },
].map((shape) => ({ ...f16, biases: true, ...shape }));

export const sgdTilesChecks: readonly KernelCheck[] = [
  ...stepShapes.map((shape) => checkOf(shape, 'rows of each tile', ownRows(3, 20, shape.lanes))),
  ...[f32, { ...f16, ...both }, { ...f32, adaptive: true, lanes: 4 }].map((shape) =>
    checkOf({ ...shape, rank: 3 }, 'one rating each', matching(600, 3, 128)),
  ),
  ...[...tails, ...halves].map((shape) => checkOf(shape, 'rows of each tile', ownRows(3, 20, shape.lanes))),
  checkOf({ ...f32, rank: 5, lanes: 4 }, 'one rating each', matching(600, 3, 128)),
  checkOf({ ...f16, arithmetic: 'f16', rank: 40, lanes: 4 }, 'one rating each', matching(600, 3, 128)),
  checkOf({ ...f32, rank: 5 }, 'rows longer than a batch', ownRows(2, 700, 1)),
  checkOf({ ...f32, ...both, rank: 6, lanes: 4 }, 'tiles without ratings', emptyTiles()),
];
