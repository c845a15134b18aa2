import type { TaskOutcome } from '../engine/task.ts';
import type { GpuTaskHandler, GpuTasks, GpuTaskScope } from './handler.ts';
import { checkKernels } from './checks/check-kernels.task.ts';
import { compileSearch } from './ranking/compile-search.task.ts';
import { compileUpdate } from './update/compile-update.task.ts';
import { copyRows } from './copies/copy-rows.task.ts';
import { addRows } from './copies/add-rows.task.ts';
import { normalEquations } from './equations/normal-equations.task.ts';
import { placeRows } from './copies/place-rows.task.ts';
import { solveEquations } from './equations/solve-equations.task.ts';
import { gram } from './implicit/gram.task.ts';
import { implicitError } from './implicit/implicit-error.task.ts';
import { shiftedNorm } from './implicit/shifted-norm.task.ts';
import { updateImplicit } from './implicit/update-implicit.task.ts';
import { kernelTimes } from './kernel-times.task.ts';
import { predict } from './serving/predict.task.ts';
import { rankListed } from './ranking/rank-listed.task.ts';
import { sgdBlock } from './sgd/sgd-block.task.ts';
import { sgdTiles } from './sgd/sgd-tiles.task.ts';
import { sgdWaves } from './sgd/sgd-waves.task.ts';
import { shrinkRows } from './sgd/shrink-rows.task.ts';
import { squaredError } from './loss/squared-error.task.ts';
import { topN } from './serving/top-n.task.ts';
import { timeVariants } from './update/choice/time-variants.task.ts';
import { update } from './update/update.task.ts';
import { addProducts, addResiduals } from './vectors/exchanged/add-vectors.task.ts';
import { beginGradients, endGradients, stepGradients } from './vectors/exchanged/take-steps.task.ts';
import { upload } from './copies/upload.task.ts';
import { weightedNorm } from './loss/weighted-norm.task.ts';

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
