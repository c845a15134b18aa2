import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { addInt8 } from '../int8/int8-plan.ts';
import { endPriorKernel } from '../solve/prior.ts';
import { blockShifts } from '../solve/row-shifts.ts';
import { addVectorSteps } from '../vectors/row-phases.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel } from '../webgpu/kernel.ts';
import type { Pass, SubmitOptions } from '../webgpu/pass.ts';
import { addCentred } from './centred.ts';
import { variantNamed } from './choice/choose.ts';
import { nameOf, solverOf, type UpdateSettings, stepsOf } from './choice/variant.ts';
import { compileForRows } from './compile-update.task.ts';
import { prepareRows } from './prepared-rows.ts';
import { type SolvedPass, submitSolved } from './solved-pass.ts';

/** The task `update` (see KernelTasks) on a GPU: solves the rows [from, to) of one side in one submission. */
export const update: GpuTaskHandler<'update'> = async (scope) => {
  const { lambda, exponent, offset, damping, biasLambda, mean = 0 } = scope.params;
  const biases = scope.has('fixedBias');
  return solve(
    scope,
    { lambda, exponent, offset, damping, biasLambda, mean },
    biases ? { fixedBias: scope.vector('fixedBias'), bias: scope.vector('bias') } : {},
  );
};

/** The task `update-implicit`: the same from implicit data. */
export const updateImplicit: GpuTaskHandler<'update-implicit'> = async (scope) => {
  if (scope.has('anchors')) throw new Error('task update-implicit: a GPU has no anchored rows');
  const { alpha, base } = scope.params;
  return solve(
    scope,
    { lambda: 0, mean: 0, implicit: { alpha, base } },
    { gram: scope.matrix('gram').values, shifts: scope.vector('shifts') },
  );
};

async function solve(
  scope: GpuScopeOf<'update'> | GpuScopeOf<'update-implicit'>,
  settings: Omit<UpdateSettings, 'variant' | 'from' | 'to' | 'rank' | 'solver' | 'measured' | 'scale'>,
  inputs: Omit<UpdateInputs, 'block' | 'fixed' | 'previous' | 'factors'>,
) {
  const { gpu, params, submitted } = scope;
  const { from, to, rank, cgSteps, measured, variant: name, ratingScale = 1 } = params;
  const implicit = settings.implicit !== undefined;
  if (name === undefined)
    throw new Error(`task update${implicit ? '-implicit' : ''}: the device chose no variant`);
  const solver = solverOf(params);
  const prior = scope.has('prior');
  const shape = { rank, biases: inputs.bias !== undefined, implicit, prior, cgSteps, solver: nameOf(solver) };
  const variant = variantNamed(name, gpu.info, shape);
  const matrix = (of: 'fixed' | 'factors') =>
    variant.precision === 'f32' ? scope.matrix(of) : scope.matrixWithHalf(of);
  const { badRow, objective } = await updateRows(
    gpu,
    {
      block: scope.block('block'),
      fixed: await matrix('fixed'),
      previous: scope.matrix('previous'),
      factors: await matrix('factors'),
      ...inputs,
      ...(prior && { prior: scope.matrix('prior').values }),
      ...(scope.has('priorBias') && { priorBias: scope.vector('priorBias') }),
    },
    { ...settings, variant, from, to, rank, solver, measured, scale: ratingScale },
    { submitted },
  );
  return { rows: to - from, values: { badRow, ...(objective === undefined ? {} : { objective }) } };
}

export interface UpdateInputs {
  readonly block: DeviceBlock;
  /**
   * θ, the factors of the fixed side. If the variant's precision is not f32, θ must have its float16 copy
   * (`half`). Variants of precision int8 compute the 8-bit copy from it.
   */
  readonly fixed: DeviceMatrix;
  /** The solved side's factors x of the previous iteration, from which CG starts. */
  readonly previous: DeviceMatrix;
  /**
   * Output: the solved side's new factors x. If the variant's precision is not f32, x must have a float16
   * copy, which is written too.
   */
  readonly factors: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly bias?: GPUBuffer;
  /** The Gram matrix Θᵀ Θ of the fixed side (F x F, F: rank padded to whole tiles); implicit data only. */
  readonly gram?: GPUBuffer;
  /**
   * For each row the number that is added to the diagonal of its A. If absent, it is computed from the
   * regularization in the settings.
   */
  readonly shifts?: GPUBuffer;
  /**
   * The priors to which the rows are drawn, in the layout of `factors`, and with biases theirs. The variant must
   * be one for priors.
   */
  readonly prior?: GPUBuffer;
  readonly priorBias?: GPUBuffer;
}

/**
 * Most workgroups of update-short and of the fused kernels. Each loops over rows of the list, so more would
 * not help: this number fills any GPU several times over.
 */
const LOOPING_WORKGROUPS = 4224;

/**
 * Solves the rows [from, to) of a block in one submission. Returns the lowest row whose solution is not
 * finite, or -1. With `measured` also returns the sum of the rows' objectives xᵀA x - 2 bᵀx, and with `timed`
 * the kernels' times.
 */
export async function updateRows(
  gpu: Gpu,
  inputs: UpdateInputs,
  settings: UpdateSettings,
  options: Pick<SubmitOptions, 'timed' | 'submitted'> = {},
): Promise<SolvedPass> {
  return submitSolved(gpu, `update ${settings.variant.name}`, settings, options, (pass, status) =>
    addHalfIteration(gpu, pass, inputs, settings, status),
  );
}

/** Compiles the kernels of one half-iteration and adds their dispatches to a pass. */
async function addHalfIteration(
  gpu: Gpu,
  pass: Pass,
  inputs: UpdateInputs,
  settings: UpdateSettings,
  status: GPUBuffer,
): Promise<void> {
  const { variant, scale, mean, implicit } = settings;
  const { block, fixed } = inputs;
  const half = variant.precision !== 'f32';
  const biases = inputs.bias !== undefined;
  const steps = stepsOf(settings.solver);
  const rows = await prepareRows(gpu, block, settings, fixed.rows, biases);
  const bindings = await commonBindings(gpu, pass, inputs, settings, status);
  if (variant.sum.kernel === 'vectors') {
    await addVectorSteps(gpu, pass, rows, { ...settings, sum: variant.sum, half, biases, steps }, bindings);
    return addEnd(gpu, pass, inputs, settings, bindings);
  }
  const kernels = await compileForRows(
    gpu,
    { ...settings, biases, prior: inputs.prior !== undefined },
    {
      fused: rows.fused !== undefined,
      batches: rows.batches.length > 0,
      short: rows.short.map(({ longest }) => longest),
    },
  );
  const uniforms = {
    zero_row: fixed.rows,
    scale,
    unscale: 1 / scale,
    mean,
    steps,
    alpha: implicit?.alpha ?? 0,
    base: implicit?.base ?? 0,
  };
  /** Dispatches a kernel on the first `count` entries of a list; `work`: bindings besides the common ones. */
  const add = (
    compiled: CompiledKernel,
    work: Readonly<Record<string, Binding>>,
    count: number,
    workgroups: number,
  ) => pass.dispatch(compiled, { ...bindings, ...work }, { ...uniforms, count }, workgroups);
  const mirror = variant.sum.kernel === 'int8' ? await addInt8(gpu, pass, fixed) : undefined;
  const gathered: Readonly<Record<string, Binding>> = mirror
    ? { fixed: mirror.rounded, scales: mirror.scales }
    : {};
  const slots = await gpu.scratch('slots', rows.slotBytes);
  // Batch by batch rows that are summed into slots and solved from these, then rows with dual systems, last
  // rows of the fused kernel.
  const { sum, gram, prior, solve: solver, short, fused } = kernels;
  for (const { parts, partCount, rows: work, rowCount } of rows.batches) {
    if (sum === undefined || solver === undefined) continue;
    add(sum.compiled, { ...gathered, work: parts, slots }, partCount, sum.workgroups(partCount));
    if (gram !== undefined) add(gram, { work, slots }, rowCount, rowCount);
    if (prior !== undefined) add(prior, { work, slots }, rowCount, rowCount);
    add(solver.compiled, { work, slots }, rowCount, solver.workgroups(rowCount));
  }
  for (const [i, { entries, count }] of rows.short.entries())
    add(short[i], { work: entries }, count, Math.min(count, LOOPING_WORKGROUPS));
  if (rows.fused !== undefined && fused !== undefined) {
    const { entries, count } = rows.fused;
    add(fused, { ...gathered, work: entries }, count, Math.min(LOOPING_WORKGROUPS, count));
  }
  await addEnd(gpu, pass, inputs, settings, bindings);
}

/** Adds the kernel that completes rows which were drawn to priors. */
async function addEnd(
  gpu: Gpu,
  pass: Pass,
  { block, prior, priorBias, gram, bias }: UpdateInputs,
  { variant, rank, from, to, implicit }: UpdateSettings,
  bindings: Awaited<ReturnType<typeof commonBindings>>,
): Promise<void> {
  if (prior === undefined || to === from) return;
  const kernel = await gpu.compile(endPriorKernel, {
    rank,
    biases: bias !== undefined,
    half: variant.precision !== 'f32',
    implicit: implicit !== undefined,
  });
  const own = { prior, row_pointers: block.rowPointers, more: priorBias ?? gram ?? prior };
  pass.dispatch(kernel, { ...bindings, ...own }, { first: from, count: to - from }, to - from);
}

/** The bindings that all kernels of a half-iteration have in common. */
async function commonBindings(
  gpu: Gpu,
  pass: Pass,
  inputs: UpdateInputs,
  settings: UpdateSettings,
  status: GPUBuffer,
) {
  const { block, fixed, fixedBias, previous, factors, bias, gram, shifts } = inputs;
  const half = settings.variant.precision !== 'f32';
  return {
    indices: block.indices,
    values: await addCentred(gpu, pass, inputs, settings),
    fixed: half ? required(fixed.half, 'half mirror of the fixed factors') : fixed.values,
    fixed_bias: fixedBias ?? block.values,
    previous: previous.values,
    shifts: shifts ?? (await blockShifts(gpu, block, settings, bias !== undefined)),
    factors: factors.values,
    // In WebGPU, two writable bindings must not share a buffer. So each output that is not used gets a
    // scratch buffer of its own.
    half: half ? required(factors.half, 'half mirror of the factors') : await gpu.scratch('no half', 16),
    bias: bias ?? (await gpu.scratch('no bias', 16)),
    status,
    ...(gram ? { gram } : {}),
    ...(inputs.prior && { prior: inputs.prior, prior_bias: inputs.priorBias ?? inputs.prior }),
  };
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`update: no ${what}`);
  return value;
}
