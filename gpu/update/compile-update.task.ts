import { transposedValuesKernel } from '../copies/upload-transposed.ts';
import { unpaddedRowsKernel } from '../copies/matrix-rows.ts';
import { strideOf } from '../device/resources.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { gramKernels } from '../implicit/gram.ts';
import { squaredErrorKernel } from '../loss/squared-error.task.ts';
import { biasSumsKernel, weightedNormKernel } from '../loss/weighted-norm.task.ts';
import { variantNamed } from './choice/choose.ts';
import { solverNamed } from './choice/variant.ts';
import { compileEvery } from './update-kernels.ts';

/**
 * The task `compile-update` (see KernelTasks) on a GPU: starts compiling and returns at once, so that ratings
 * are uploaded while kernels compile. Errors of compiling are not reported here, but by the task that needs
 * the kernel.
 */
export const compileAhead: GpuTaskHandler<'compile-update'> = async ({ gpu, params }) => {
  const { rank, biases, implicit = false, variants } = params;
  const settings = {
    rank,
    biases,
    ...(implicit ? { implicit } : {}),
    solver: solverNamed(params),
  };
  const chosen = variants.map((name) => variantNamed(name, gpu.info, params));
  const half = chosen.some(({ precision }) => precision !== 'f32');
  // Kernels are requested in the order in which they are needed: kernels that prepare ratings (which are
  // uploaded meanwhile) or make the Gram matrix, kernels that solve rows, kernels that measure the error.
  const ratings = implicit ? gramKernels(gpu, rank).kernels : [gpu.compile(transposedValuesKernel, {})];
  const rows = chosen.map((variant) => compileEvery(gpu, { ...settings, variant }));
  const measures = [
    ...(implicit ? [] : [gpu.compile(squaredErrorKernel, { stride: strideOf(rank), biased: biases, half })]),
    gpu.compile(weightedNormKernel, {}),
    ...(biases ? [gpu.compile(biasSumsKernel, {})] : []),
  ];
  const fetch = strideOf(rank) === rank ? [] : [gpu.compile(unpaddedRowsKernel, {})];
  // The task that needs a kernel reports its errors. The handler only avoids an unhandled rejection.
  for (const compiling of [...ratings, ...rows, ...measures, ...fetch]) compiling.catch(() => undefined);
  return { rows: 0 };
};
