/**
 * Checks of wavefront-update, the SGD in which blocks that are stepped at the same time share no rows and
 * columns. Results are compared with the same steps in float64, in exactly the same order. Inside a block,
 * ratings share rows and columns as in real data.
 */
import type { Partition } from '../../../engine/partition.ts';
import { sgdWaves } from '../../sgd/epoch.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import {
  randomSides,
  type Rating,
  sourcesOf,
  STEP_RATES,
  stepCheck,
  stepError,
  steppedSides,
  type StepShape,
  stepShapes,
} from '../support/sgd-steps.ts';
import { columnsOf, randomBlock } from '../../../operators/tasks/sample-inputs.ts';
import { openTask } from '../support/run-kernel.ts';
import { sgdWavesKernel } from '../../sgd/sgd-waves.ts';

const NONE = 0xffff_ffff;

interface Problem {
  readonly block: Partition;
  readonly rowStarts: readonly number[];
  readonly columnStarts: readonly number[];
}

/**
 * Bands of rows (one per worker) with one row and with many, blocks without ratings, and a row with ratings
 * in every band of columns.
 */
const usual: Problem = {
  block: randomBlock([5, 0, 1, 40, 3, 2, 0, 17, 9, 1, 1, 30, 0], 41, 5),
  rowStarts: [0, 3, 4, 8, 13],
  columnStarts: [0, 1, 6, 7, 15, 22, 30, 36, 40, 41],
};
const single: Problem = { block: randomBlock([3, 0, 2], 3, 6), rowStarts: [0, 3], columnStarts: [0, 1, 3] };

/**
 * The band of columns of each worker in each wave. Within a wave no two workers have the same band, and over
 * all waves each worker has every band once. In the last wave no worker has a band.
 */
function wavesOf({ rowStarts, columnStarts }: Problem): number[][] {
  const bands = columnStarts.length - 1;
  const workers = rowStarts.slice(1).map((_, worker) => worker);
  return [
    ...Array.from({ length: bands }, (_, wave) => workers.map((worker) => (wave + 2 * worker) % bands)),
    workers.map(() => NONE),
  ];
}

function ratingsOf({ block, rowStarts, columnStarts }: Problem, worker: number, band: number): Rating[] {
  if (band === NONE) return [];
  const ratings: Rating[] = [];
  for (let row = rowStarts[worker]; row < rowStarts[worker + 1]; row++) {
    const first = Number(block.columns.offsets[row]);
    columnsOf(block, row).forEach((column, k) => {
      if (column >= columnStarts[band] && column < columnStarts[band + 1])
        ratings.push({ row, column, value: Number(block.columns.values[first + k]) });
    });
  }
  return ratings;
}

async function check(
  gpu: Gpu,
  shape: StepShape,
  problem: Problem,
): Promise<{ error: number; limit: number }> {
  const { block, rowStarts, columnStarts } = problem;
  const { rank, precision, biases, adaptive, lanes } = shape;
  const waves = wavesOf(problem);
  const order = Uint32Array.from(waves.flat());
  const [rows, columns] = [block.rows, columnStarts.at(-1) ?? 0];
  const start = randomSides(rows, columns, shape, rank);
  const outputs = randomSides(rows, columns, shape, rank + 1);
  const inputs = {
    ...sourcesOf(start),
    block,
    order: { layout: 'wave-order', rows: waves.length, columns: { order } },
  };
  const params = { rank, biases, adaptive, precision, lanes, rowStarts, columnStarts, ...STEP_RATES };
  const opened = await openTask(gpu, params, inputs, { outputs });
  try {
    await sgdWaves(opened.scope);
    const first = await opened.fetchPadded('rows');
    // A second run, on blocks that are already sorted, must give the same bits.
    await sgdWaves(opened.scope);
    const again = await opened.fetchPadded('rows');
    if (first.some((value, at) => !Object.is(value, again[at]))) return { error: Infinity, limit: 0 };
    const runs = waves.flatMap((bands) => bands.map((band, worker) => ratingsOf(problem, worker, band)));
    return await stepError(opened, start, steppedSides(start, runs, shape, 'both'), shape);
  } finally {
    opened.close();
  }
}

function checkOf(shape: StepShape, what: string, problem: Problem): KernelCheck {
  return stepCheck(sgdWavesKernel, shape, what, {}, (gpu) => check(gpu, shape, problem));
}

export const sgdWavesChecks: readonly KernelCheck[] = [
  // This kernel takes steps for few ratings at the same time. Many threads share a row, and each holds few of
  // the row's features.
  ...stepShapes
    .filter(({ rank, lanes }) => rank <= 32 * lanes)
    .map((shape) => checkOf(shape, '4 workers', usual)),
  checkOf({ precision: 'f32', biases: false, adaptive: false, lanes: 32, rank: 512 }, '4 workers', usual),
  checkOf({ precision: 'f32', biases: true, adaptive: true, lanes: 1, rank: 3 }, '1 worker', single),
];
