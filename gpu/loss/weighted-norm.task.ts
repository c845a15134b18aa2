import { BIAS_ROWS, biasSumsKernel } from './bias-sums.ts';
import { NORM_ROWS, weightedNormKernel } from './weighted-norm.ts';
import type { GpuTaskHandler } from '../handler.ts';

/** Offsets of storage bindings are multiples of this. */
const STORAGE_STEP = 256;

/**
 * See `weighted-norm` of KernelTasks. Float32 sums of NORM_ROWS rows each, of biases of BIAS_ROWS, come back
 * together and are added up in float64 in their order.
 */
export const weightedNorm: GpuTaskHandler<'weighted-norm'> = async (scope) => {
  const { from, to, exponent = 1, plainWeights = [1, 1, 1] } = scope.params;
  const [first, second, others] = plainWeights;
  const { gpu } = scope;
  const biased = scope.has('bias');
  const valuesOf = (norms: Float32Array, biases: Float32Array) => ({
    sum: sumOf(norms, 2, 0),
    plain: sumOf(norms, 2, 1),
    ...(biased
      ? {
          biasSum: sumOf(biases, 4, 0),
          biasPlain: sumOf(biases, 4, 1),
          biasAlong: scope.has('totals') ? sumOf(biases, 4, 2) : 0,
        }
      : {}),
  });
  const groups = Math.ceil((to - from) / NORM_ROWS);
  if (groups === 0 || scope.cancelled())
    return { rows: to - from, values: valuesOf(new Float32Array(0), new Float32Array(0)) };
  const { stride, values: factors } = scope.matrix('factors');
  const offsets = scope.block('block').rowPointers;
  const biasGroups = biased ? Math.ceil((to - from) / BIAS_ROWS) : 0;
  const biasAt = biased ? Math.ceil((8 * groups) / STORAGE_STEP) * STORAGE_STEP : 8 * groups;
  const size = biasAt + 16 * biasGroups;
  const [ofFactors, ofBiases] = await Promise.all([
    gpu.compile(weightedNormKernel, {}),
    biased ? gpu.compile(biasSumsKernel, {}) : undefined,
  ]);
  const sums = await gpu.scratch('weighted norms', size);
  const pass = gpu
    .pass('weighted-norm')
    .dispatch(
      ofFactors,
      { offsets, factors, sums: { buffer: sums, size: 8 * groups } },
      { from_row: from, to_row: to, stride, exponent, first, second, others },
      groups,
    );
  if (ofBiases !== undefined) {
    const bias = scope.vector('bias');
    pass.dispatch(
      ofBiases,
      {
        offsets,
        bias,
        totals: scope.has('totals') ? scope.vector('totals') : bias,
        sums: { buffer: sums, offset: biasAt, size: 16 * biasGroups },
      },
      { from_row: from, to_row: to },
      biasGroups,
    );
  }
  const { bytes } = await pass.submit({ read: { buffer: sums, bytes: size }, submitted: scope.submitted });
  return {
    rows: to - from,
    bytesDown: size,
    values: valuesOf(new Float32Array(bytes, 0, 2 * groups), new Float32Array(bytes, biasAt, 4 * biasGroups)),
  };
};

/** Σ of every `width`-th number from `at`. */
function sumOf(groups: Float32Array, width: number, at: number): number {
  let sum = 0;
  for (let k = at; k < groups.length; k += width) sum += groups[k];
  return sum;
}
