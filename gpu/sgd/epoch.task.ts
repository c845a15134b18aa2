/**
 * The tasks of SGD on a GPU: `sgd-block`, `sgd-tiles` and `sgd-waves` step factors along ratings, and
 * `compile-sgd` compiles their kernels ahead.
 */
import { fromHalfKernel, addHalf, toHalfKernel } from '../copies/to-half.ts';
import { type DeviceMatrix, strideOf, STRIDE_STEP } from '../device/resources.ts';
import type { GpuTaskHandler, GpuTaskScope } from '../handler.ts';
import { squaredErrorKernel } from '../loss/squared-error.task.ts';
import { weightedNormKernel } from '../loss/weighted-norm.task.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import { type SgdStepParams, steppedFactors, stepValues, teamNeeds } from './sgd-step.ts';
import {
  sgdTilesKernel,
  tileBatches,
  batchOrder,
  sgdColumnCountKernel,
  sgdTileCountKernel,
  sgdTileScatterKernel,
  tileLists,
} from './sgd-tiles.ts';
import { sgdWavesKernel, waveBlocks } from './sgd-waves.ts';

/**
 * Threads of a workgroup of sgd-list. The plan gives the number of teams (`workers`) and the threads of each
 * (`lanes`), from which the number of workgroups follows.
 */
const LIST_THREADS = 128;

/** Features of a row of factors; with biases two more, see SgdStepParams. */
function featuresOf({ rank, biases }: { readonly rank: number; readonly biases: boolean }): number {
  return rank + (biases ? 2 : 0);
}

/**
 * SGD on a shuffled list of ratings (layout rating-list). The teams of all workgroups update the factors
 * without locks (batch-Hogwild!, cuMF_SGD).
 */
export const sgdBlock: GpuTaskHandler<'sgd-block'> = async (scope) => {
  const { gpu, params } = scope;
  const { from = 0, to = 0, batch, lanes = 1, workers = 1, precision = 'f32', biases, adaptive } = params;
  if (batch === undefined)
    throw new Error('task sgd-block: a GPU steps lists of ratings; blocks are for threads of a CPU');
  const list = scope.list('block');
  const order = await orderBuffer(scope, 'batch order');
  const kernel = await gpu.compile(sgdListKernel, {
    features: featuresOf(params),
    precision,
    threads: LIST_THREADS,
    lanes,
    biases,
    adaptive,
  });
  await step(scope, 'sgd-list', precision, false, (pass, factors) => {
    const { ratings, rows, columns, values } = list;
    const uniforms = { ratings, first_batch: from, last_batch: to, batch, ...ratesOf(params) };
    const workgroups = Math.ceil((workers * lanes) / LIST_THREADS);
    pass.dispatch(kernel, { rows, columns, values, order: order.buffer, ...factors }, uniforms, workgroups);
  });
  return { rows: list.ratings };
};

/** One epoch of SGD in one submission. Each workgroup processes the ratings of one tile, a set of columns. */
export const sgdTiles: GpuTaskHandler<'sgd-tiles'> = async (scope) => {
  const { gpu, params } = scope;
  const { tiles, lanes, threads, precision, arithmetic, biases, adaptive, level, seed, epoch } = params;
  const block = scope.block('block');
  const lists = await tileLists(gpu, block, scope.matrix('columns').rows, tiles, level);
  const { starts, ratings, columns, places } = lists;
  const features = featuresOf(params);
  const shape = { features, precision, arithmetic, places, threads, lanes, biases, adaptive };
  const kernel = await gpu.compile(sgdTilesKernel, shape);
  const { rows, stride } = scope.matrix('rows');
  const batches = tileBatches(lists.largest, rows * stride * (precision === 'f16' ? 2 : 4), shape);
  await step(scope, 'sgd-tiles', precision, true, (pass, factors) => {
    const uniforms = { tiles, ...ratesOf(params), level, batches, ...batchOrder(batches, seed, epoch) };
    pass.dispatch(kernel, { starts, ratings, columns, ...factors }, uniforms, tiles);
  });
  return { rows: block.ratings };
};

/**
 * One epoch of SGD in one submission, with one dispatch for each wave. In a wave, the workgroups process
 * blocks that have no rows and no columns in common.
 */
export const sgdWaves: GpuTaskHandler<'sgd-waves'> = async (scope) => {
  const { gpu, params } = scope;
  const { lanes, precision, biases, adaptive, rowStarts, columnStarts } = params;
  const block = scope.block('block');
  const workers = rowStarts.length - 1;
  const blocks = await waveBlocks(gpu, block, { rowStarts, columnStarts });
  const order = await orderBuffer(scope, 'wave order');
  const features = featuresOf(params);
  const kernel = await gpu.compile(sgdWavesKernel, { features, precision, lanes, biases, adaptive });
  await step(scope, 'sgd-waves', precision, true, (pass, factors) => {
    const uniforms = { workers, column_bands: columnStarts.length - 1, ...ratesOf(params) };
    for (let wave = 0; wave < order.length / workers; wave++)
      pass.dispatch(kernel, { ...blocks, order: order.buffer, ...factors }, { ...uniforms, wave }, workers);
  });
  return { rows: block.ratings };
};

/** Starts compiling and returns at once. The task that needs a kernel reports its errors. */
export const compileSgd: GpuTaskHandler<'compile-sgd'> = async ({ gpu, params }) => {
  const { biases, adaptive, precision, steps } = params;
  const features = featuresOf(params);
  const half = precision === 'f16';
  // The slowest to compile is first.
  const compiling = [
    ...(steps.kernel === 'sgd-waves'
      ? [gpu.compile(sgdWavesKernel, { features, precision, lanes: steps.lanes, biases, adaptive })]
      : [
          gpu.compile(sgdTilesKernel, {
            features,
            precision,
            arithmetic: steps.arithmetic,
            places: steps.places,
            threads: steps.threads,
            lanes: steps.lanes,
            biases,
            adaptive,
          }),
          gpu.compile(sgdColumnCountKernel, {}),
          gpu.compile(sgdTileCountKernel, {}),
          gpu.compile(sgdTileScatterKernel, {}),
        ]),
    gpu.compile(shrinkRowsKernel, { adaptive }),
    ...(half ? [gpu.compile(toHalfKernel, {}), gpu.compile(fromHalfKernel, {})] : []),
    gpu.compile(squaredErrorKernel, { stride: strideOf(features), biased: false, half }),
    gpu.compile(weightedNormKernel, {}),
  ];
  for (const kernel of compiling) kernel.catch(() => undefined);
  return { rows: 0 };
};

function ratesOf({
  rate,
  rowLambda,
  columnLambda,
}: {
  readonly rate: number;
  readonly rowLambda: number;
  readonly columnLambda: number;
}) {
  return { rate, row_lambda: rowLambda, column_lambda: columnLambda };
}

/** Uploads the input `order` to a scratch buffer. */
async function orderBuffer(scope: GpuTaskScope, label: string) {
  const order = scope.partition('order').columns.order as Uint32Array;
  const buffer = await scope.gpu.scratch(label, order.byteLength);
  await scope.gpu.upload(buffer, order);
  return { buffer, length: order.length };
}

type FactorBuffers = Readonly<Record<keyof typeof steppedFactors, GPUBuffer>>;

/**
 * Submits one pass in which the kernels that `add` dispatches update the factors `rows` and `columns`. If
 * factors are stored in float16, kernels update the float16 copies, which are then converted to float32.
 * `copies`: the factors and AdaGrad's sums are first copied from the task's inputs, unless these are the same
 * buffers.
 */
async function step(
  scope: GpuTaskScope<{ adaptive: boolean }>,
  label: string,
  precision: 'f32' | 'f16',
  copies: boolean,
  add: (pass: Pass, factors: FactorBuffers) => void,
): Promise<void> {
  const { gpu, params } = scope;
  const half = precision === 'f16';
  const matrix = (name: string) => (half ? scope.matrixWithHalf(name) : scope.matrix(name));
  const [rows, columns] = [await matrix('rows'), await matrix('columns')];
  const stored = (one: DeviceMatrix) => (half ? (one.half as GPUBuffer) : one.values);
  const sums = async (name: string) =>
    params.adaptive ? scope.matrix(name).values : gpu.scratch(`no ${name}`, 16);
  const factors = {
    row_factors: stored(rows),
    column_factors: stored(columns),
    row_sums: await sums('rowSums'),
    column_sums: await sums('columnSums'),
  };
  const pass = gpu.pass(label);
  for (const [source, target] of [
    [copies ? scope.matrix('sourceRows') : rows, rows],
    [copies ? scope.matrix('sourceColumns') : columns, columns],
  ] as const) {
    if (half && target.half !== undefined) await addHalf(gpu, pass, { ...source, half: target.half });
    else copyMatrix(scope, source, target);
  }
  if (copies && params.adaptive) {
    copyMatrix(scope, scope.matrix('sourceRowSums'), scope.matrix('rowSums'));
    copyMatrix(scope, scope.matrix('sourceColumnSums'), scope.matrix('columnSums'));
  }
  add(pass, factors);
  if (half) {
    const kernel = await gpu.compile(fromHalfKernel, {});
    for (const one of [rows, columns]) {
      const quads = (one.rows * one.stride) / 4;
      pass.dispatch(kernel, { half: stored(one), factors: one.values }, { quads }, { threads: quads });
    }
  }
  await pass.submit({ submitted: scope.submitted });
}

/** Copies a matrix, before all commands that are submitted later. */
function copyMatrix({ gpu }: GpuTaskScope, source: DeviceMatrix, target: DeviceMatrix): void {
  if (source.values === target.values) return;
  const encoder = gpu.device.createCommandEncoder({ label: 'copy' });
  encoder.copyBufferToBuffer(source.values, 0, target.values, 0, source.rows * source.stride * 4);
  gpu.device.queue.submit([encoder.finish()]);
}

/**
 * Shrinks factors before an epoch, which has the effect of the regularization that does not depend on numbers
 * of ratings (task `shrink-rows`): features are divided by 1 + rate * offset, biases by 1 + rate * damping.
 * The matrix has `quads` groups of four features, `row_quads` of them in a row. `own`: column of the bias;
 * `one`: column of the constant 1, which does not change. Without biases, both are beyond the end of a row.
 */
export const shrinkRowsKernel = kernelOf<{ readonly adaptive: boolean }>()({
  name: 'shrink-rows',
  reads: { sums: 'array<f32>' },
  writes: { factors: 'array<vec4f>' },
  uniforms: {
    quads: 'u32',
    row_quads: 'u32',
    rate: 'f32',
    offset: 'f32',
    damping: 'f32',
    own: 'u32',
    one: 'u32',
  },
  // AdaGrad's sums of squared gradients are stored as a matrix with one column, whose rows are padded.
  values: ({ adaptive }) => ({ THREADS: 256, ADAPTIVE: adaptive, SUM_STRIDE: STRIDE_STEP }),
  samples: [{ adaptive: false }, { adaptive: true }],
});

/**
 * The task `shrink-rows` (see KernelTasks) on a GPU: applies an epoch's regularization to all rows of factors
 * at once.
 */
export const shrinkRows: GpuTaskHandler<'shrink-rows'> = async (scope) => {
  const { from, to, rate, offset, damping, adaptive } = scope.params;
  const { gpu } = scope;
  const { rows, stride, values: factors } = scope.matrix('factors');
  if (from !== 0 || to !== rows)
    throw new Error(`task shrink-rows: a GPU takes all ${rows} rows at once, got ${from} to ${to}`);
  const { own = stride, one = stride } = scope.params;
  const quads = (rows * stride) / 4;
  const kernel = await gpu.compile(shrinkRowsKernel, { adaptive });
  const sums = adaptive ? scope.matrix('sums').values : await gpu.scratch('no sums', 16);
  const uniforms = { quads, row_quads: stride / 4, rate, offset, damping, own, one };
  await gpu
    .pass('shrink-rows')
    .dispatch(kernel, { sums, factors }, uniforms, { threads: quads })
    .submit({ submitted: scope.submitted });
  return { rows };
};

/**
 * SGD on a list of ratings, cut into batches of `batch` ratings. It processes the batches with the numbers
 * order[first_batch] to order[last_batch - 1]. They are shared among teams of threads in all workgroups,
 * which update factors without locks (Hogwild!).
 */
export const sgdListKernel = kernelOf<SgdStepParams>()({
  name: 'sgd-list',
  reads: { rows: 'array<u32>', columns: 'array<u32>', values: 'array<f32>', order: 'array<u32>' },
  writes: steppedFactors,
  uniforms: {
    ratings: 'u32',
    first_batch: 'u32',
    last_batch: 'u32',
    batch: 'u32',
    rate: 'f32',
    row_lambda: 'f32',
    column_lambda: 'f32',
  },
  needs: ({ lanes }) => teamNeeds(lanes),
  values: stepValues,
  samples: [
    { features: 34, precision: 'f16', threads: 128, lanes: 4, biases: true, adaptive: true },
    { features: 16, precision: 'f32', threads: 128, lanes: 1, biases: false, adaptive: false },
  ],
});
