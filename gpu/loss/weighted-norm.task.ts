import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { blockShifts } from '../solve/row-shifts.ts';
import { type Binding, kernelOf } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

const THREADS = 128;

/** Rows that one workgroup sums. */
export const NORM_ROWS = 64;

/**
 * Sums for the regularization term of the loss, over rows x_u of factors: Σ shift_u ‖x_u‖², where shift_u is
 * the row's number in `shifts`, and Σ w_k x_uk² over the rows whose shift is not 0. The weights w_k are
 * `first` and `second` for the first two features and `others` for all other features. With `drawn` 1 it is the
 * distance from the row's `prior` in place of x_u; with 0 any finite matrix of as many elements may be bound. Each
 * workgroup writes both sums as float32, for NORM_ROWS rows. A row has `stride` elements.
 */
export const weightedNormKernel = kernelOf()({
  name: 'weighted-norm',
  reads: { shifts: 'array<f32>', factors: 'array<vec4f>', prior: 'array<vec4f>' },
  writes: { sums: 'array<vec2f>' },
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    stride: 'u32',
    first: 'f32',
    second: 'f32',
    others: 'f32',
    drawn: 'f32',
  },
  values: () => ({ THREADS, ROWS: NORM_ROWS }),
  bytes: 8 * THREADS,
});

/** Rows that one workgroup sums. */
const BIAS_ROWS = 1024;

/**
 * Sums four terms of the loss that contain biases, over the rows with ratings in [from_row, to_row): n_u (β_u -
 * β₀)², (β_u - β₀)², T_u β_u and n_u β_u², where β_u is the row's bias (`bias`), n_u its number of ratings, T_u
 * its number in `totals`, and β₀ its `prior_bias` with `drawn` 1, else 0. Writes four float32 for each BIAS_ROWS
 * rows.
 */
export const biasSumsKernel = kernelOf()({
  name: 'bias-sums',
  reads: {
    offsets: 'array<i32>',
    bias: 'array<f32>',
    totals: 'array<f32>',
    prior_bias: 'array<f32>',
  },
  writes: { sums: 'array<vec4f>' },
  uniforms: { from_row: 'u32', to_row: 'u32', drawn: 'f32' },
  values: () => ({ THREADS, ROWS: BIAS_ROWS }),
  bytes: 16 * THREADS,
});

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
        ...(scope.has('priorBias') && { biasSquares: sumOf(biases, 4, 3) }),
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
  const drawn = scope.has('prior');
  pass.dispatch(
    await scope.gpu.compile(weightedNormKernel, {}),
    { shifts, factors, prior: drawn ? scope.matrix('prior').values : factors, sums },
    { from_row: from, to_row: to, stride, first, second, others, drawn: drawn ? 1 : 0 },
    groups,
  );
}

async function addBiasSums(scope: Scope, pass: Pass, sums: Binding, groups: number): Promise<void> {
  const { from, to } = scope.params;
  const bias = scope.vector('bias');
  const drawn = scope.has('priorBias');
  pass.dispatch(
    await scope.gpu.compile(biasSumsKernel, {}),
    {
      offsets: scope.block('block').rowPointers,
      bias,
      totals: scope.has('totals') ? scope.vector('totals') : bias,
      prior_bias: drawn ? scope.vector('priorBias') : bias,
      sums,
    },
    { from_row: from, to_row: to, drawn: drawn ? 1 : 0 },
    groups,
  );
}

/** The sum of every `width`-th number from index `at` on. */
function sumOf(groups: Float32Array, width: number, at: number): number {
  let sum = 0;
  for (let k = at; k < groups.length; k += width) sum += groups[k];
  return sum;
}
