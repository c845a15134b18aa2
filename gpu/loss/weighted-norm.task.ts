import { BIAS_ROWS, biasSumsKernel } from './bias-sums.ts';
import { NORM_ROWS, weightedNormKernel } from './weighted-norm.ts';
import { blockShifts } from '../solve/row-shifts.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import type { Binding } from '../webgpu/compiled-kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

/** Offsets of storage bindings must be multiples of this number of bytes. */
const STORAGE_STEP = 256;

/**
 * The task `weighted-norm` (see KernelTasks) on a GPU: the sums for the regularization term of the loss.
 * Workgroups write float32 sums of NORM_ROWS rows of factors, and with biases of BIAS_ROWS biases. One
 * download returns both; the host adds them in order in float64.
 */
export const weightedNorm: GpuTaskHandler<'weighted-norm'> = async (scope) => {
  const { from, to } = scope.params;
  const { gpu } = scope;
  const biased = scope.has('bias');
  const groups = scope.cancelled() ? 0 : Math.ceil((to - from) / NORM_ROWS);
  const biasGroups = biased && groups > 0 ? Math.ceil((to - from) / BIAS_ROWS) : 0;
  const biasAt = biased ? Math.ceil((8 * groups) / STORAGE_STEP) * STORAGE_STEP : 8 * groups;
  const size = biasAt + 16 * biasGroups;
  let bytes = new ArrayBuffer(0);
  if (groups > 0) {
    const sums = await gpu.scratch('weighted norms', size);
    const pass = gpu.pass('weighted-norm');
    await addNorms(scope, pass, { buffer: sums, size: 8 * groups }, groups);
    if (biased)
      await addBiasSums(scope, pass, { buffer: sums, offset: biasAt, size: 16 * biasGroups }, biasGroups);
    ({ bytes } = await pass.submit({ read: { buffer: sums, bytes: size }, submitted: scope.submitted }));
  }
  const [norms, biases] = [
    new Float32Array(bytes, 0, 2 * groups),
    new Float32Array(bytes, biasAt, 4 * biasGroups),
  ];
  return {
    rows: to - from,
    bytesDown: size,
    values: {
      sum: sumOf(norms, 2, 0),
      plain: sumOf(norms, 2, 1),
      ...(biased && {
        biasSum: sumOf(biases, 4, 0),
        biasPlain: sumOf(biases, 4, 1),
        biasAlong: scope.has('totals') ? sumOf(biases, 4, 2) : 0,
      }),
    },
  };
};

type Scope = GpuScopeOf<'weighted-norm'>;

async function addNorms(scope: Scope, pass: Pass, sums: Binding, groups: number): Promise<void> {
  const { from, to, exponent, plainWeights = [1, 1, 1] } = scope.params;
  const [first, second, others] = plainWeights;
  const { stride, values: factors } = scope.matrix('factors');
  const shifts = scope.has('shifts')
    ? scope.vector('shifts')
    : await blockShifts(scope.gpu, scope.block('block'), { from, to, lambda: 1, exponent }, false);
  pass.dispatch(
    await scope.gpu.compile(weightedNormKernel, {}),
    { shifts, factors, sums },
    { from_row: from, to_row: to, stride, first, second, others },
    groups,
  );
}

async function addBiasSums(scope: Scope, pass: Pass, sums: Binding, groups: number): Promise<void> {
  const { from, to } = scope.params;
  const bias = scope.vector('bias');
  pass.dispatch(
    await scope.gpu.compile(biasSumsKernel, {}),
    {
      offsets: scope.block('block').rowPointers,
      bias,
      totals: scope.has('totals') ? scope.vector('totals') : bias,
      sums,
    },
    { from_row: from, to_row: to },
    groups,
  );
}

/** The sum of every `width`-th number from index `at` on. */
function sumOf(groups: Float32Array, width: number, at: number): number {
  let sum = 0;
  for (let k = at; k < groups.length; k += width) sum += groups[k];
  return sum;
}
