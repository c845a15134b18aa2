import { fromHalfKernel } from '../copies/from-half.ts';
import { spinKernel } from '../copies/spin.ts';
import { subtractBiasKernel } from '../copies/subtract-bias.ts';
import { transposedValuesKernel } from '../copies/transposed-values.ts';
import { unpaddedRowsKernel } from '../copies/unpadded-rows.ts';
import { toHalfKernel } from '../copies/to-half.ts';
import { addMatrixKernel } from '../equations/exchange/add-matrix.ts';
import { addSlotsKernel } from '../equations/exchange/add-slots.ts';
import { fillSlotsKernel } from '../equations/exchange/fill-slots.ts';
import { addProductsKernel } from '../vectors/exchanged/add-products.ts';
import { gradientStepKernel } from '../vectors/exchanged/gradient-step.ts';
import { partProductsKernel } from '../vectors/exchanged/part-products.ts';
import { addGramKernel } from '../implicit/add-gram.ts';
import { gramSumKernel } from '../implicit/gram-sum.ts';
import { normalEquationsInt8Kernel } from '../int8/normal-equations-int8.ts';
import { columnMaximaKernel, toInt8Kernel } from '../int8/to-int8.ts';
import { updateInt8Kernel } from '../int8/update-int8.ts';
import { implicitErrorKernel } from '../implicit/implicit-error.ts';
import { shiftedNormKernel } from '../implicit/shifted-norm.ts';
import { objectiveSumsKernel } from '../loss/objective-sums.ts';
import { updateImplicitTensorKernel } from '../implicit/update-implicit-tensor.ts';
import type { KernelDescriptor, KernelParams } from '../webgpu/kernel.ts';
import { biasSumsKernel } from '../loss/bias-sums.ts';
import { squaredErrorKernel } from '../loss/squared-error.ts';
import { weightedNormKernel } from '../loss/weighted-norm.ts';
import { chooseNormalEquations, normalEquationsKernel } from '../equations/normal-equations.ts';
import { normalEquationsTensorKernel } from '../equations/normal-equations-tensor.ts';
import { countBeforeKernel } from '../ranking/count-before.ts';
import { discountExcludedKernel } from '../ranking/discount-excluded.ts';
import { listedScoresKernel } from '../ranking/listed-scores.ts';
import { predictKernel } from '../serving/predict.ts';
import { topNKernel } from '../serving/top-n.ts';
import { sgdTileCountKernel } from '../sgd/sorting/sgd-tile-count.ts';
import { sgdTileScatterKernel } from '../sgd/sorting/sgd-tile-scatter.ts';
import { sgdWaveCountKernel } from '../sgd/sorting/sgd-wave-count.ts';
import { sgdWaveScatterKernel } from '../sgd/sorting/sgd-wave-scatter.ts';
import { shrinkRowsKernel } from '../sgd/shrink-rows.ts';
import { sgdListKernel } from '../sgd/sgd-list.ts';
import { sgdTilesKernel } from '../sgd/sgd-tiles.ts';
import { sgdWavesKernel } from '../sgd/sgd-waves.ts';
import { solveCgKernel } from '../solve/solve-cg.ts';
import { solveCgRegistersKernel } from '../solve/solve-cg-registers.ts';
import { chooseSolveCholesky, solveCholeskyKernel } from '../solve/solve-cholesky.ts';
import { solveNonnegativeKernel } from '../solve/solve-nonnegative.ts';
import { chooseUpdateMatrixFree, updateMatrixFreeKernel } from '../update/update-matrix-free.ts';
import { updateShortKernel } from '../update/update-short.ts';
import { vectorProductsKernel } from '../vectors/vector-products.ts';
import { vectorStepKernel } from '../vectors/vector-step.ts';
import { updateTensorKernel } from '../update/update-tensor.ts';

/** A kernel, and variants that together use all of its text. */
export interface KernelSample {
  readonly kernel: KernelDescriptor;
  readonly variants: readonly KernelParams[];
}

/** All kernels. */
export const kernelSamples: readonly KernelSample[] = [
  sample(normalEquationsKernel, [
    chooseNormalEquations(10, 'f32', false),
    chooseNormalEquations(100, 'f16', true),
    { ...chooseNormalEquations(40, 'f32', false), implicit: true },
    { ...chooseNormalEquations(200, 'f16', false), vectorized: false, staging: 'strided', triangle: 'full' },
    { ...chooseNormalEquations(512, 'f32', true), vectorized: false, accumulate: 'memory' },
  ]),
  sample(solveCholeskyKernel, [chooseSolveCholesky(64, true, true), chooseSolveCholesky(512, false, false)]),
  sample(solveNonnegativeKernel, [
    { rank: 64, biases: true, half: true },
    { rank: 512, biases: false, half: false },
  ]),
  sample(solveCgKernel, [
    { rank: 10, a: 'f32', biases: false, half: false },
    { rank: 100, a: 'f16', biases: true, half: true },
    { rank: 512, a: 'f16', biases: false, half: true },
  ]),
  sample(updateMatrixFreeKernel, [
    chooseUpdateMatrixFree(10, 'f16', true),
    chooseUpdateMatrixFree(512, 'f32', false),
  ]),
  sample(vectorProductsKernel, [
    { rank: 512, precision: 'f16', biases: true, first: true, threads: 64, lanes: 16, width: 32 },
    { rank: 264, precision: 'f32', biases: false, first: false, threads: 64, lanes: 32, width: 32 },
    {
      rank: 100,
      precision: 'f32',
      biases: false,
      apart: true,
      first: false,
      threads: 64,
      lanes: 8,
      width: 32,
    },
  ]),
  sample(partProductsKernel, [
    { rank: 100, biases: true, implicit: false, first: true },
    { rank: 40, biases: false, implicit: true, first: true },
    { rank: 512, biases: false, implicit: true, first: false },
  ]),
  sample(addProductsKernel, [
    { rank: 40, biases: true, first: true },
    { rank: 40, biases: false, first: false },
  ]),
  sample(
    gradientStepKernel,
    (['begin', 'step', 'end'] as const).flatMap((phase) => [
      { rank: 264, biases: true, implicit: false, phase },
      { rank: 40, biases: false, implicit: true, phase },
    ]),
  ),
  sample(
    vectorStepKernel,
    (['begin', 'residual', 'step'] as const).map((phase) => ({ rank: 264, biases: true, half: true, phase })),
  ),
  sample(normalEquationsInt8Kernel, [
    { rank: 100, biases: true },
    { rank: 64, biases: true },
    { rank: 128, biases: false },
  ]),
  sample(updateInt8Kernel, [
    { rank: 100, biases: true, halfA: false },
    { rank: 64, biases: true, halfA: false },
    { rank: 200, biases: false, halfA: true },
    { rank: 100, biases: false, halfA: true, room: 6 },
  ]),
  sample(columnMaximaKernel, [{ rank: 100 }]),
  sample(toInt8Kernel, [{ rank: 100 }]),
  sample(toHalfKernel, [{}]),
  sample(subtractBiasKernel, [{}]),
  sample(transposedValuesKernel, [{}]),
  sample(unpaddedRowsKernel, [{}]),
  sample(addSlotsKernel, [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ]),
  sample(fillSlotsKernel, [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ]),
  sample(addMatrixKernel, [{}]),
  sample(addGramKernel, [{ rank: 40 }]),
  sample(gramSumKernel, [{ rank: 40 }]),
  sample(implicitErrorKernel, [{ stride: 48 }]),
  sample(shiftedNormKernel, [{}]),
  sample(objectiveSumsKernel, [{}]),
  sample(updateImplicitTensorKernel, [
    { rank: 64, bin: 32 },
    { rank: 100, bin: 32 },
  ]),
  sample(normalEquationsTensorKernel, [
    { rank: 64, bin: 32, biases: false, implicit: true },
    { rank: 100, bin: 32, biases: false, implicit: true },
    { rank: 100, bin: 32, biases: true },
    { rank: 64, bin: 32, biases: false },
  ]),
  sample(updateTensorKernel, [
    { rank: 100, bin: 32, biases: true, halfA: true },
    { rank: 64, bin: 32, biases: false, halfA: false },
    { rank: 136, bin: 32, biases: false, halfA: true, room: 13 },
  ]),
  sample(solveCgRegistersKernel, [
    { rank: 100, halfA: true, biases: true, half: true },
    { rank: 64, halfA: false, biases: false, half: false },
  ]),
  sample(updateShortKernel, [
    ...[true, false].map((centre) => ({ rank: 100, longest: 64, biases: true, centre })),
    { rank: 10, longest: 32, biases: false, centre: false },
  ]),
  sample(fromHalfKernel, [{}]),
  sample(shrinkRowsKernel, [{ adaptive: false }, { adaptive: true }]),
  sample(sgdTilesKernel, [
    {
      features: 34,
      precision: 'f16',
      places: 20,
      threads: 256,
      lanes: 4,
      biases: true,
      adaptive: true,
      arithmetic: 'f32',
    },
    {
      features: 34,
      precision: 'f16',
      places: 20,
      threads: 256,
      lanes: 4,
      biases: true,
      adaptive: true,
      arithmetic: 'f16',
    },
    {
      features: 128,
      precision: 'f16',
      places: 20,
      threads: 512,
      lanes: 4,
      biases: false,
      adaptive: false,
      arithmetic: 'f16',
    },
    {
      features: 128,
      precision: 'f32',
      places: 20,
      threads: 64,
      lanes: 1,
      biases: false,
      adaptive: false,
      arithmetic: 'f32',
    },
  ]),
  sample(sgdListKernel, [
    { features: 34, precision: 'f16', threads: 128, lanes: 4, biases: true, adaptive: true },
    { features: 16, precision: 'f32', threads: 128, lanes: 1, biases: false, adaptive: false },
  ]),
  sample(sgdTileCountKernel, [{}]),
  sample(sgdTileScatterKernel, [{}]),
  sample(sgdWavesKernel, [
    { features: 34, precision: 'f16', lanes: 4, biases: true, adaptive: true },
    { features: 128, precision: 'f32', lanes: 32, biases: false, adaptive: false },
    { features: 16, precision: 'f32', lanes: 1, biases: false, adaptive: false },
  ]),
  sample(sgdWaveCountKernel, [{}]),
  sample(sgdWaveScatterKernel, [{}]),
  sample(spinKernel, [{}]),
  sample(squaredErrorKernel, [
    { stride: 16, biased: true, half: false },
    { stride: 112, biased: false, half: true },
    { stride: 512, biased: true, half: true },
  ]),
  sample(weightedNormKernel, [{}]),
  sample(biasSumsKernel, [{}]),
  sample(predictKernel, [{ stride: 112 }]),
  sample(listedScoresKernel, [{}]),
  sample(countBeforeKernel, [{}]),
  sample(discountExcludedKernel, [{}]),
  sample(topNKernel, [
    { excluding: true, bounded: true, ordered: true },
    { excluding: false, bounded: false, ordered: false },
  ]),
];

function sample<Params extends KernelParams>(
  kernel: KernelDescriptor<Params>,
  variants: readonly NoInfer<Params>[],
): KernelSample {
  return { kernel: kernel as unknown as KernelDescriptor, variants };
}
