import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { variantNamed } from './choice/choose.ts';
import { nameOf, solverOf, type UpdateSettings, stepsOf } from './choice/variant.ts';
import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { addInt8 } from '../int8/int8-plan.ts';
import { blockShifts } from '../solve/row-shifts.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel } from '../webgpu/kernel.ts';
import type { Pass, SubmitOptions } from '../webgpu/pass.ts';
import { addCentred } from './centred.ts';
import { prepareRows, type PreparedRows } from './prepared-rows.ts';
import { type SolvedPass, submitSolved } from './solved-pass.ts';
import { compileForRows } from './compile-update.task.ts';
import { addVectorSteps } from '../vectors/row-phases.ts';

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
  const { alpha, base, anchored } = scope.params;
  if (anchored) throw new Error('task update-implicit: a GPU does not move rows from where they are');
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
  const shape = { rank, biases: inputs.bias !== undefined, implicit, cgSteps, solver: nameOf(solver) };
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
    new HalfIteration(gpu, inputs, settings, status).addTo(pass),
  );
}

/**
 * Dispatches a kernel on the first `count` entries of a list. `work`: bindings in addition to the common
 * ones.
 */
type AddKernel = (
  compiled: CompiledKernel,
  work: Readonly<Record<string, Binding>>,
  count: number,
  workgroups: number,
) => void;

/** Compiles the kernels of one half-iteration and adds their dispatches to a pass. */
class HalfIteration {
  readonly #gpu: Gpu;
  readonly #inputs: UpdateInputs;
  readonly #settings: UpdateSettings;
  readonly #status: GPUBuffer;
  readonly #half: boolean;
  readonly #biases: boolean;
  /** Steps of CG; 0 for Cholesky. */
  readonly #steps: number;

  constructor(gpu: Gpu, inputs: UpdateInputs, settings: UpdateSettings, status: GPUBuffer) {
    this.#gpu = gpu;
    this.#inputs = inputs;
    this.#settings = settings;
    this.#status = status;
    this.#half = settings.variant.precision !== 'f32';
    this.#biases = inputs.bias !== undefined;
    this.#steps = stepsOf(settings.solver);
  }

  async addTo(pass: Pass): Promise<void> {
    const { variant } = this.#settings;
    const rows = await prepareRows(
      this.#gpu,
      this.#inputs.block,
      this.#settings,
      this.#inputs.fixed.rows,
      this.#biases,
    );
    const bindings = await this.#bindings(pass);
    if (variant.sum.kernel === 'vectors')
      return addVectorSteps(
        this.#gpu,
        pass,
        rows,
        { ...this.#settings, sum: variant.sum, half: this.#half, biases: this.#biases, steps: this.#steps },
        bindings,
      );
    const kernels = await compileForRows(
      this.#gpu,
      { ...this.#settings, biases: this.#biases },
      {
        fused: rows.fused !== undefined,
        batches: rows.batches.length > 0,
        short: rows.short.map(({ longest }) => longest),
      },
    );
    const uniforms = this.#uniforms();
    await this.#addAll(pass, rows, kernels, (compiled, work, count, workgroups) => {
      pass.dispatch(compiled, { ...bindings, ...work }, { ...uniforms, count }, workgroups);
    });
  }

  #uniforms() {
    const { scale, mean, implicit } = this.#settings;
    return {
      zero_row: this.#inputs.fixed.rows,
      scale,
      unscale: 1 / scale,
      mean,
      steps: this.#steps,
      alpha: implicit?.alpha ?? 0,
      base: implicit?.base ?? 0,
    };
  }

  /**
   * Adds the dispatches for all lists of rows (see PreparedRows): batch by batch rows that are summed into
   * slots and solved from these, then rows with dual systems, last rows of the fused kernel.
   */
  async #addAll(
    pass: Pass,
    rows: PreparedRows,
    { sum, gram, solve, short, fused }: Awaited<ReturnType<typeof compileForRows>>,
    add: AddKernel,
  ): Promise<void> {
    const { sum: kind } = this.#settings.variant;
    const mirror = kind.kernel === 'int8' ? await addInt8(this.#gpu, pass, this.#inputs.fixed) : undefined;
    const gathered: Readonly<Record<string, Binding>> = mirror
      ? { fixed: mirror.rounded, scales: mirror.scales }
      : {};
    const slots = await this.#gpu.scratch('slots', rows.slotBytes);
    for (const { parts, partCount, rows: work, rowCount } of rows.batches) {
      if (sum === undefined || solve === undefined) continue;
      add(sum.compiled, { ...gathered, work: parts, slots }, partCount, sum.workgroups(partCount));
      if (gram !== undefined) add(gram, { work, slots }, rowCount, rowCount);
      add(solve.compiled, { work, slots }, rowCount, solve.workgroups(rowCount));
    }
    for (const [i, { entries, count }] of rows.short.entries())
      add(short[i], { work: entries }, count, Math.min(count, LOOPING_WORKGROUPS));
    if (rows.fused === undefined || fused === undefined) return;
    const { entries, count } = rows.fused;
    add(fused, { ...gathered, work: entries }, count, Math.min(LOOPING_WORKGROUPS, count));
  }

  async #bindings(pass: Pass) {
    const { block, fixed, fixedBias, previous, factors, bias, gram, shifts } = this.#inputs;
    return {
      indices: block.indices,
      values: await addCentred(this.#gpu, pass, this.#inputs, this.#settings),
      fixed: this.#half ? required(fixed.half, 'half mirror of the fixed factors') : fixed.values,
      fixed_bias: fixedBias ?? block.values,
      previous: previous.values,
      shifts: shifts ?? (await blockShifts(this.#gpu, block, this.#settings, this.#biases)),
      factors: factors.values,
      // In WebGPU, two writable bindings must not share a buffer. So each output that is not used gets a
      // scratch buffer of its own.
      half: this.#half
        ? required(factors.half, 'half mirror of the factors')
        : await this.#gpu.scratch('no half', 16),
      bias: bias ?? (await this.#gpu.scratch('no bias', 16)),
      status: this.#status,
      ...(gram ? { gram } : {}),
    };
  }
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`update: no ${what}`);
  return value;
}
