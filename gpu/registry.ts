import type { GpuTaskHandler } from './handler.ts';
import { checkKernels } from './tasks/check-kernels.ts';
import { copyRows } from './tasks/copy-rows.ts';
import { kernelTimes } from './tasks/kernel-times.ts';
import { predict } from './tasks/predict.ts';
import { sgdBlock } from './tasks/sgd-block.ts';
import { sgdTiles } from './tasks/sgd-tiles.ts';
import { sgdWaves } from './tasks/sgd-waves.ts';
import { squaredError } from './tasks/squared-error.ts';
import { compileTopN, topN } from './tasks/top-n.ts';
import { tuneUpdate } from './tasks/tune-update.ts';
import { update } from './tasks/update.ts';
import { weightedNorm } from './tasks/weighted-norm.ts';

/** What a GPU device can run, by the names of operators/tasks.ts; what serves only GPUs is described where it is. */
export const handlers: Readonly<Record<string, GpuTaskHandler>> = {
  // What a task names is on the device before its handler is called.
  upload: async () => ({ rows: 0 }),
  update,
  'sgd-block': sgdBlock,
  'sgd-tiles': sgdTiles,
  'sgd-waves': sgdWaves,
  'copy-rows': copyRows,
  'squared-error': squaredError,
  'weighted-norm': weightedNorm,
  predict,
  'top-n': topN,
  'compile-top-n': compileTopN,
  'kernel-times': kernelTimes,
  'check-kernels': checkKernels,
  'tune-update': tuneUpdate,
};
