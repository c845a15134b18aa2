import type { TaskOutcome } from '../engine/task.ts';
import type { GpuTaskHandler, GpuTasks, GpuTaskScope } from './handler.ts';
import { checkKernels } from './tasks/check-kernels.ts';
import { compileSearch } from './tasks/compile-search.ts';
import { compileUpdate } from './tasks/compile-update.ts';
import { copyRows } from './tasks/copy-rows.ts';
import { addRows } from './tasks/equations/add-rows.ts';
import { normalEquations } from './tasks/equations/normal-equations.ts';
import { placeRows } from './tasks/equations/place-rows.ts';
import { solveEquations } from './tasks/equations/solve-equations.ts';
import { gram } from './tasks/implicit/gram.ts';
import { implicitError } from './tasks/implicit/implicit-error.ts';
import { shiftedNorm } from './tasks/implicit/shifted-norm.ts';
import { updateImplicit } from './tasks/implicit/update-implicit.ts';
import { kernelTimes } from './tasks/kernel-times.ts';
import { predict } from './tasks/predict.ts';
import { rankListed } from './tasks/rank-listed.ts';
import { sgdBlock } from './tasks/sgd/sgd-block.ts';
import { sgdTiles } from './tasks/sgd/sgd-tiles.ts';
import { sgdWaves } from './tasks/sgd/sgd-waves.ts';
import { shrinkRows } from './tasks/sgd/shrink-rows.ts';
import { squaredError } from './tasks/squared-error.ts';
import { topN } from './tasks/top-n.ts';
import { timeVariants } from './tasks/time-variants.ts';
import { update } from './tasks/update.ts';
import { addProducts, addResiduals } from './tasks/vectors/add-vectors.ts';
import { beginGradients, endGradients, stepGradients } from './tasks/vectors/take-steps.ts';
import { upload } from './tasks/upload.ts';
import { weightedNorm } from './tasks/weighted-norm.ts';

const handlers: { readonly [K in keyof GpuTasks]: GpuTaskHandler<K> } = {
  // The partitions that a task names are on the device before its handler is called.
  upload,
  update,
  'normal-equations': normalEquations,
  'solve-equations': solveEquations,
  'add-residuals': addResiduals,
  'add-products': addProducts,
  'begin-gradients': beginGradients,
  'step-gradients': stepGradients,
  'end-gradients': endGradients,
  'add-rows': addRows,
  'place-rows': placeRows,
  'sgd-block': sgdBlock,
  'sgd-tiles': sgdTiles,
  'sgd-waves': sgdWaves,
  'copy-rows': copyRows,
  'shrink-rows': shrinkRows,
  'squared-error': squaredError,
  'weighted-norm': weightedNorm,
  gram,
  'update-implicit': updateImplicit,
  'implicit-error': implicitError,
  'shifted-norm': shiftedNorm,
  predict,
  'top-n': topN,
  'rank-listed': rankListed,
  'compile-search': compileSearch,
  'compile-update': compileUpdate,
  'kernel-times': kernelTimes,
  'check-kernels': checkKernels,
  'time-variants': timeVariants,
};

const byName: Readonly<Record<string, ((scope: GpuTaskScope<never>) => Promise<TaskOutcome>) | undefined>> =
  handlers;

/** Does a task that came as a message. */
export async function handle(kernel: string, scope: GpuTaskScope): Promise<TaskOutcome> {
  const handler = byName[kernel];
  if (handler === undefined) throw new Error(`no GPU handler is registered for the task ${kernel}`);
  // A task is made by its contract, so its parameters are those of its kernel.
  return handler(scope as GpuTaskScope<never>);
}
