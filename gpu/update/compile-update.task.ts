import { transposedValuesKernel, unpaddedRowsKernel } from '../copies/matrix-rows.ts';
import { toHalfKernel } from '../copies/to-half.ts';
import { strideOf } from '../device/resources.ts';
import { compileSolve, compileSum } from '../equations/slot-kernels.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { gramKernels, addGramKernel } from '../implicit/gram.task.ts';
import { columnMaximaKernel, toInt8Kernel } from '../int8/int8-plan.ts';
import { squaredErrorKernel } from '../loss/squared-error.task.ts';
import { biasSumsKernel, weightedNormKernel } from '../loss/weighted-norm.task.ts';
import { addPriorKernel, endPriorKernel } from '../solve/prior.ts';
import { rowShiftsKernel } from '../solve/row-shifts.ts';
import { compileVectorSteps } from '../vectors/row-phases.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { CompiledKernel } from '../webgpu/kernel.ts';
import { subtractBiasKernel, needsCentred } from './centred.ts';
import { variantNamed } from './choice/choose.ts';
import { solverNamed, type UpdateSettings } from './choice/variant.ts';
import { SHORT_LENGTHS } from './deal-rows.ts';
import { objectiveSumsKernel } from './solved-pass.ts';
import { updateShortKernel } from './update-short.ts';
import { updateImplicitTensorKernel, updateInt8Kernel, updateTensorKernel } from './update-tensor.ts';

/**
 * The task `compile-update` (see KernelTasks) on a GPU: starts compiling and returns at once, so that ratings
 * are uploaded while kernels compile. Errors of compiling are not reported here, but by the task that needs
 * the kernel.
 */
export const compileAhead: GpuTaskHandler<'compile-update'> = async ({ gpu, params }) => {
  const { rank, biases, implicit = false, prior = false, variants } = params;
  const settings = { rank, biases, ...(implicit ? { implicit } : {}), prior, solver: solverNamed(params) };
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

/** The settings that determine which kernels are compiled. */
type KernelSettings = Pick<UpdateSettings, 'variant' | 'rank' | 'solver'> & {
  readonly biases: boolean;
  readonly implicit?: unknown;
  /** True: rows are drawn to priors. */
  readonly prior?: boolean;
};

/** The lists that contain rows (see PreparedRows). Only the kernels of these lists are compiled. */
interface NeededKernels {
  readonly fused: boolean;
  /**
   * True if some rows are too long for the other lists: they are summed into slots (scratch memory) by one
   * kernel and solved from the slots by another.
   */
  readonly batches: boolean;
  /**
   * For each list of short rows that is not empty: the most ratings of its rows, for which update-short is
   * compiled.
   */
  readonly short: readonly number[];
}

/**
 * Compiles the kernels of one half-iteration, for the lists that contain rows. Dawn compiles two kernels at a
 * time, in the order of requests. So the kernels that take longest to compile are requested first
 * (bench/results, `compile-alone`).
 */
export async function compileForRows(
  gpu: Gpu,
  settings: KernelSettings,
  { fused: hasFused, batches, short: lengths }: NeededKernels,
) {
  const { variant, rank, biases, prior: drawn } = settings;
  const implicit = settings.implicit !== undefined;
  const [fused, sum, solve, short, gram, prior] = await Promise.all([
    hasFused && variant.fused ? compileFused(gpu, settings, variant.fused) : undefined,
    batches ? compileSum(gpu, settings, biases) : undefined,
    batches ? compileSolve(gpu, settings, biases) : undefined,
    Promise.all(
      lengths.map((longest) =>
        gpu.compile(updateShortKernel, {
          rank,
          longest,
          biases,
          centre: biases && !needsCentred(variant, rank, biases),
        }),
      ),
    ),
    batches && implicit ? gpu.compile(addGramKernel, { rank }) : undefined,
    batches && drawn ? gpu.compile(addPriorKernel, { rank, biases, vectors: false }) : undefined,
  ]);
  return { sum, solve, fused, short, gram, prior };
}

/**
 * Compiles, before the ratings are known, all kernels that a half-iteration of this variant may need, for any
 * numbers of ratings in rows. Kernels that compile fast are requested last.
 */
export async function compileEvery(gpu: Gpu, settings: KernelSettings): Promise<void> {
  const { variant, rank, biases, prior } = settings;
  const { sum, short, fused } = variant;
  const [half, implicit] = [variant.precision !== 'f32', settings.implicit !== undefined];
  const lengths = SHORT_LENGTHS.filter((longest) => longest <= short).toReversed();
  const rows =
    sum.kernel === 'vectors'
      ? compileVectorSteps(gpu, {
          ...settings,
          sum,
          half,
          // The weights are uniforms: kernels for any of them are the same.
          implicit: implicit ? { alpha: 0, base: 0 } : undefined,
        })
      : compileForRows(gpu, settings, { fused: fused !== undefined, batches: true, short: lengths });
  const mirrors = [
    ...(implicit ? [] : [gpu.compile(rowShiftsKernel, {})]),
    ...(prior ? [gpu.compile(endPriorKernel, { rank, biases, half, implicit })] : []),
    gpu.compile(objectiveSumsKernel, {}),
    ...(half ? [gpu.compile(toHalfKernel, {})] : []),
    ...(sum.kernel === 'int8'
      ? [gpu.compile(columnMaximaKernel, { rank }), gpu.compile(toInt8Kernel, { rank })]
      : []),
    ...(needsCentred(variant, rank, biases) ? [gpu.compile(subtractBiasKernel, {})] : []),
  ];
  await Promise.all([rows, ...mirrors]);
}

async function compileFused(
  gpu: Gpu,
  { rank, biases, implicit, variant }: KernelSettings,
  { bin, halfA, room }: NonNullable<UpdateSettings['variant']['fused']>,
): Promise<CompiledKernel> {
  if (implicit !== undefined) return gpu.compile(updateImplicitTensorKernel, { rank, bin });
  const form = { halfA, ...(room === undefined ? {} : { room }) };
  if (variant.sum.kernel === 'int8') return gpu.compile(updateInt8Kernel, { rank, biases, ...form });
  return gpu.compile(updateTensorKernel, { rank, bin, biases, ...form });
}
