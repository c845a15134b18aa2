/**
 * Checks of SGD on lists of ratings, against the same steps in float64. The ratings of a batch share no row
 * and no column, so the order of their steps makes no difference.
 */
import { CounterRandom } from '../../../engine/random.ts';
import { sgdBlock, sgdListKernel } from '../../sgd/epoch.task.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import {
  randomSides,
  type Rating,
  STEP_RATES,
  stepCheck,
  stepError,
  steppedSides,
  type StepShape,
  stepShapes,
} from '../support/sgd-steps.ts';
import { openTask } from '../support/run-kernel.ts';

const THREADS = 128;
const [ROWS_EACH, COLUMNS_EACH] = [5, 7];

interface Problem {
  readonly batches: number;
  /** Ratings of a batch; the last batch has two fewer. */
  readonly batch: number;
  /** The batches order[from] .. order[to - 1] are stepped. */
  readonly from: number;
  readonly to: number;
  /** Teams that the task requests. */
  readonly workers: number;
}

/** A list in which each batch has its own rows and columns. */
function listOf({ batches, batch }: Problem): Rating[] {
  const random = new CounterRandom(batch);
  return Array.from({ length: batches * batch - 2 }, (_, k): Rating => {
    const number = Math.floor(k / batch);
    return {
      row: number * ROWS_EACH + ((2 * k) % ROWS_EACH),
      column: number * COLUMNS_EACH + ((3 * k) % COLUMNS_EACH),
      value: Math.fround(2 * random.uniform(k) - 1),
    };
  });
}

async function check(
  gpu: Gpu,
  shape: StepShape,
  problem: Problem,
): Promise<{ error: number; limit: number }> {
  const { batches, batch, from, to, workers } = problem;
  const { rank, precision, biases, adaptive, lanes } = shape;
  const ratings = listOf(problem);
  const start = randomSides(batches * ROWS_EACH, batches * COLUMNS_EACH, shape, rank);
  const order = new Uint32Array(batches);
  order.forEach((_, at) => (order[at] = (3 * at + 1) % batches));
  const list = {
    layout: 'rating-list',
    rows: ratings.length,
    columns: {
      rows: Uint32Array.from(ratings, ({ row }) => row),
      columns: Uint32Array.from(ratings, ({ column }) => column),
      values: Float32Array.from(ratings, ({ value }) => value),
    },
  };
  const params = { rank, biases, adaptive, precision, lanes, workers, from, to, batch, ...STEP_RATES };
  const inputs = { block: list, order: { layout: 'batch-order', rows: batches, columns: { order } } };
  const opened = await openTask(gpu, params, inputs, { outputs: start });
  try {
    await sgdBlock(opened.scope);
    const visited = Array.from(order.subarray(from, to)).flatMap((which) =>
      ratings.slice(which * batch, (which + 1) * batch),
    );
    return await stepError(opened, start, steppedSides(start, [visited], shape, 'none'), shape);
  } finally {
    opened.close();
  }
}

function checkOf(shape: StepShape, what: string, problem: Problem): KernelCheck {
  return stepCheck(sgdListKernel, shape, what, { threads: THREADS }, (gpu) => check(gpu, shape, problem));
}

const plain = { precision: 'f32', biases: false, adaptive: false, lanes: 1, rank: 4 } as const;

export const sgdListChecks: readonly KernelCheck[] = [
  ...stepShapes.map((shape) =>
    checkOf(shape, 'batches in an order', { batches: 7, batch: 20, from: 1, to: 6, workers: 1 }),
  ),
  checkOf(plain, 'a batch longer than the list', { batches: 1, batch: 300, from: 0, to: 1, workers: 1 }),
  checkOf({ ...plain, lanes: 4, adaptive: true, biases: true }, 'more batches than teams', {
    batches: 100,
    batch: 6,
    from: 0,
    to: 100,
    workers: 64,
  }),
  checkOf(plain, 'more teams than batches', { batches: 40, batch: 9, from: 0, to: 40, workers: 600 }),
];
