import { fromHalfKernel } from '../copies/from-half.ts';
import { toHalfKernel } from '../copies/to-half.ts';
import { strideOf } from '../device/resources.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { squaredErrorKernel } from '../loss/squared-error.task.ts';
import { weightedNormKernel } from '../loss/weighted-norm.task.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { sgdTilesKernel } from './sgd-tiles.ts';
import { sgdWavesKernel } from './sgd-waves.ts';
import { shrinkRowsKernel } from './shrink-rows.ts';
import { sgdColumnCountKernel } from './sorting/sgd-column-count.ts';
import { sgdTileCountKernel } from './sorting/sgd-tile-count.ts';
import { sgdTileScatterKernel } from './sorting/sgd-tile-scatter.ts';

/**
 * The task `compile-sgd` (see KernelTasks) on a GPU: starts compiling and returns at once. Errors of
 * compiling are not reported here, but by the task that needs the kernel.
 */
export const compileSgd: GpuTaskHandler<'compile-sgd'> = async ({ gpu, params }) => {
  const { rank, biases, adaptive, precision } = params;
  const features = rank + (biases ? 2 : 0);
  const half = precision === 'f16';
  const compiling = [
    ...stepKernels(gpu, params, features),
    gpu.compile(shrinkRowsKernel, { adaptive }),
    ...(half ? [gpu.compile(toHalfKernel, {}), gpu.compile(fromHalfKernel, {})] : []),
    gpu.compile(squaredErrorKernel, { stride: strideOf(features), biased: false, half }),
    gpu.compile(weightedNormKernel, {}),
  ];
  for (const kernel of compiling) kernel.catch(() => undefined);
  return { rows: 0 };
};

type Compiling = Parameters<GpuTaskHandler<'compile-sgd'>>[0]['params'];

/** The kernels of an epoch, the slowest to compile first. */
function stepKernels(gpu: Gpu, { biases, adaptive, precision, steps }: Compiling, features: number) {
  if (steps.kernel === 'sgd-waves')
    return [gpu.compile(sgdWavesKernel, { features, precision, lanes: steps.lanes, biases, adaptive })];
  const { places, lanes, threads, arithmetic } = steps;
  return [
    gpu.compile(sgdTilesKernel, {
      features,
      precision,
      arithmetic,
      places,
      threads,
      lanes,
      biases,
      adaptive,
    }),
    gpu.compile(sgdColumnCountKernel, {}),
    gpu.compile(sgdTileCountKernel, {}),
    gpu.compile(sgdTileScatterKernel, {}),
  ];
}
