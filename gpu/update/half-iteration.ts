import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { addGramKernel } from '../kernels/implicit/add-gram.ts';
import { updateImplicitTensorKernel } from '../kernels/implicit/update-implicit-tensor.ts';
import { subtractBiasKernel, subtractBiasWorkgroups } from '../kernels/copies/subtract-bias.ts';
import { addHalf } from '../kernels/copies/to-half.ts';
import { normalEquationsInt8Kernel } from '../kernels/int8/normal-equations-int8.ts';
import { addInt8 } from '../kernels/int8/to-int8.ts';
import { updateInt8Kernel } from '../kernels/int8/update-int8.ts';
import { normalEquationsKernel, normalEquationsWorkgroups } from '../kernels/normal-equations/normal-equations.ts';
import { normalEquationsTensorKernel } from '../kernels/normal-equations/normal-equations-tensor.ts';
import { regularizationValues } from '../kernels/regularization.ts';
import { solveCgKernel, type SolveCgParams, solveCgWorkgroups } from '../kernels/solve/solve-cg.ts';
import { solveCgRegistersKernel } from '../kernels/solve/solve-cg-registers.ts';
import { chooseSolveCholesky, ROUNDING, solveCholeskyKernel } from '../kernels/solve/solve-cholesky.ts';
import { solveNonnegativeKernel } from '../kernels/solve/solve-nonnegative.ts';
import { updateMatrixFreeKernel, updateMatrixFreeWorkgroups } from '../kernels/update/update-matrix-free.ts';
import { updateShortKernel } from '../kernels/update/update-short.ts';
import { updateTensorKernel } from '../kernels/update/update-tensor.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel, KernelTimes, Pass, SubmitOptions } from '../webgpu/pass.ts';
import { freeParams, type PreparedRows, prepareRows } from './prepared-rows.ts';
import type { UpdateSettings, UpdateVariant } from './variant.ts';
import { addVectorSteps } from './vector-steps.ts';

export interface UpdateInputs {
  readonly block: DeviceBlock;
  /** θ, with its half mirror when the variant gathers float16. */
  readonly fixed: DeviceMatrix;
  /** x of the last iteration. */
  readonly previous: DeviceMatrix;
  /** x to write, with its half mirror when the variant writes one. */
  readonly factors: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly bias?: GPUBuffer;
  /** Of implicit data: G of the fixed side (F x F), and a shift for each row. */
  readonly gram?: GPUBuffer;
  readonly shifts?: GPUBuffer;
}

/** True where a pass takes the mean and the fixed side's biases off the ratings in front of a variant's kernels; those on tensor cores do so as they gather. */
export function needsCentred({ sum }: Pick<UpdateVariant, 'sum'>): boolean {
  return sum.kernel !== 'tensor' && sum.kernel !== 'int8';
}

/** Bytes of a block's ratings without biases. */
export function centredBytes(ratings: number): number {
  return 16 * Math.ceil(ratings / 4);
}

/** Content of `status` while no row is bad. */
const NO_ROW = 0xffff_ffff;

/** Workgroups of one subgroup that walk the short rows: enough to fill any GPU several times. */
const SHORT_WORKGROUPS = 4224;

/**
 * Solves the rows [from, to) of a block in one submission. Gives the first row whose solution is not finite, or -1, and with
 * `timed` the kernels' times.
 */
export async function updateRows(gpu: Gpu, inputs: UpdateInputs, settings: UpdateSettings, options: Pick<SubmitOptions, 'timed' | 'submitted'> = {}): Promise<{ readonly badRow: number; readonly times: KernelTimes }> {
  const status = await gpu.scratch('status', 16);
  gpu.device.queue.writeBuffer(status, 0, new Uint32Array([NO_ROW]));
  const pass = gpu.pass(`update ${settings.variant.name}`);
  const kernels = new UpdateKernels(gpu, inputs, settings, status);
  await kernels.addTo(pass);
  const { times, bytes } = await pass.submit({ ...options, read: { buffer: status, bytes: 4 } });
  const [bad] = new Uint32Array(bytes);
  return { badRow: bad === NO_ROW ? -1 : bad, times };
}

/** A kernel, and its workgroups for a number of parts or rows. */
interface SizedKernel {
  readonly compiled: CompiledKernel;
  workgroups(count: number): number;
}

/** Picks, compiles and dispatches the kernels of one half-iteration. */
class UpdateKernels {
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
    this.#steps = settings.solver === 'cholesky' ? 0 : settings.solver.steps;
  }

  async addTo(pass: Pass): Promise<void> {
    const { variant, scale, mean, implicit = { alpha: 0, base: 0 } } = this.#settings;
    const { fixed, factors } = this.#inputs;
    const rows = await prepareRows(this.#gpu, this.#inputs.block, this.#settings, fixed.rows, this.#biases);
    const bindings = await this.#bindings(await this.#addCentred(pass));
    if (variant.sum.kernel === 'vectors') return addVectorSteps(this.#gpu, pass, rows, { ...this.#settings, sum: variant.sum, half: this.#half, biases: this.#biases, steps: this.#steps }, bindings);
    const kernels = await this.#compile(rows);
    const uniforms = { zero_row: fixed.rows, scale, unscale: 1 / scale, ...regularizationValues(this.#settings), mean, rounding: this.#settings.implicit === undefined ? ROUNDING : 0, ...implicit };
    const add = (compiled: CompiledKernel, work: Readonly<Record<string, Binding>>, count: number, workgroups: number) => {
      pass.dispatch(compiled, { ...bindings, ...work }, { ...uniforms, count }, workgroups);
    };
    if (rows.free !== undefined && kernels.free !== undefined) {
      this.#startFree();
      add(kernels.free.compiled, { work: rows.free.entries }, rows.free.count, kernels.free.workgroups(rows.free.count));
    }
    const mirror = variant.sum.kernel === 'int8' ? await addInt8(this.#gpu, pass, fixed) : undefined;
    const gathered: Readonly<Record<string, Binding>> = mirror === undefined ? {} : { fixed: mirror.rounded, scales: mirror.scales };
    const slots = await this.#gpu.scratch('slots', rows.slotBytes);
    const { sum, solve } = kernels;
    for (const batch of rows.batches) {
      if (sum === undefined || solve === undefined) continue;
      add(sum.compiled, { ...gathered, work: batch.parts, slots }, batch.partCount, sum.workgroups(batch.partCount));
      if (kernels.gram !== undefined) add(kernels.gram, { work: batch.rows, slots }, batch.rowCount, batch.rowCount);
      add(solve.compiled, { work: batch.rows, slots }, batch.rowCount, solve.workgroups(batch.rowCount));
    }
    for (const [i, { entries, count }] of rows.short.entries()) add(kernels.short[i], { work: entries }, count, Math.min(count, SHORT_WORKGROUPS));
    if (rows.fused !== undefined && kernels.fused !== undefined) {
      add(kernels.fused, { ...gathered, work: rows.fused.entries }, rows.fused.count, Math.min(variant.fused?.workgroups ?? 1, rows.fused.count));
    }
    // The kernel without A does not write the mirror; one pass over all rows is cheap beside the rest.
    if (this.#half && rows.free !== undefined) await addHalf(this.#gpu, pass, factors);
  }

  /** The kernels that the lists need, compiled side by side. */
  async #compile(rows: PreparedRows) {
    const { variant, rank } = this.#settings;
    const biases = this.#biases;
    const batches = rows.batches.length > 0;
    const implicit = this.#settings.implicit !== undefined;
    const [free, sum, solve, fused, short, gram] = await Promise.all([
      rows.free && this.#compileFree(),
      batches ? this.#compileSum() : undefined,
      batches ? this.#compileSolve() : undefined,
      rows.fused && variant.fused && this.#compileFused(variant.fused.bin),
      Promise.all(rows.short.map(({ longest }) => this.#gpu.compile(updateShortKernel, { rank, longest, biases }))),
      batches && implicit ? this.#gpu.compile(addGramKernel, { rank }) : undefined,
    ]);
    return { free, sum, solve, fused, short, gram };
  }

  /** The ratings for the kernels; where these do not take μ and the fixed side's biases off themselves, a pass does so first. */
  async #addCentred(pass: Pass): Promise<GPUBuffer> {
    const { block, fixedBias } = this.#inputs;
    const { from, to, mean, variant } = this.#settings;
    if (fixedBias === undefined || !needsCentred(variant)) return block.values;
    const first = Math.floor(block.offsets[from] / 4);
    const fours = Math.ceil(block.offsets[to] / 4) - first;
    const centred = await this.#gpu.scratch('centred ratings', centredBytes(block.ratings));
    const bindings = { indices: block.indices, values: block.values, fixed_bias: fixedBias, centred };
    if (fours > 0) pass.dispatch(await this.#gpu.compile(subtractBiasKernel, {}), bindings, { first, fours, mean }, subtractBiasWorkgroups(fours));
    return centred;
  }

  async #bindings(values: GPUBuffer): Promise<Readonly<Record<string, Binding>>> {
    const { block, fixed, fixedBias, previous, factors, bias, gram, shifts } = this.#inputs;
    return {
      indices: block.indices,
      values,
      fixed: this.#half ? required(fixed.half, 'half mirror of the fixed factors') : fixed.values,
      fixed_bias: fixedBias ?? block.values,
      previous: previous.values,
      factors: factors.values,
      // A written buffer may be bound only once, so each missing output has a buffer of its own.
      half: this.#half ? required(factors.half, 'half mirror of the factors') : await this.#gpu.scratch('no half', 16),
      bias: bias ?? (await this.#gpu.scratch('no bias', 16)),
      status: this.#status,
      ...(gram && shifts ? { gram, shifts } : {}),
    };
  }

  /** Copies the last version to the outputs, where CG without A starts. */
  #startFree(): void {
    const { previous, factors } = this.#inputs;
    const encoder = this.#gpu.device.createCommandEncoder({ label: 'start of short rows' });
    encoder.copyBufferToBuffer(previous.values, 0, factors.values, 0, previous.rows * previous.stride * 4);
    this.#gpu.device.queue.submit([encoder.finish()]);
  }

  async #compileFused(bin: number): Promise<CompiledKernel> {
    const { rank, variant, implicit } = this.#settings;
    if (implicit) return this.#gpu.compile(updateImplicitTensorKernel, { rank, bin, steps: this.#steps });
    if (variant.sum.kernel === 'int8') return this.#gpu.compile(updateInt8Kernel, { rank, biases: this.#biases, steps: this.#steps, halfA: variant.halfA });
    return this.#gpu.compile(updateTensorKernel, { rank, bin, biases: this.#biases, steps: this.#steps, halfA: variant.halfA });
  }

  async #compileFree(): Promise<SizedKernel> {
    const params = freeParams(this.#gpu, this.#settings, this.#biases);
    return { compiled: await this.#gpu.compile(updateMatrixFreeKernel, params), workgroups: (rows) => updateMatrixFreeWorkgroups(params, rows) };
  }

  async #compileSum(): Promise<SizedKernel> {
    const { variant, rank } = this.#settings;
    const implicit = this.#settings.implicit !== undefined;
    const biases = this.#biases;
    if (variant.sum.kernel === 'tensor') {
      const compiled = await this.#gpu.compile(normalEquationsTensorKernel, { rank, bin: variant.sum.bin, biases, implicit });
      return { compiled, workgroups: (parts) => parts };
    }
    if (variant.sum.kernel === 'int8') return { compiled: await this.#gpu.compile(normalEquationsInt8Kernel, { rank, biases }), workgroups: (parts) => parts };
    if (variant.sum.kernel === 'vectors' || variant.precision === 'int8') throw new Error('a variant by vectors sums no A');
    const { kernel: _kernel, ...tiles } = variant.sum;
    const params = { rank, precision: variant.precision, biases, implicit, ...tiles };
    return { compiled: await this.#gpu.compile(normalEquationsKernel, params), workgroups: (parts) => normalEquationsWorkgroups(params, parts) };
  }

  async #compileSolve(): Promise<SizedKernel> {
    const { variant, rank, solver, nonnegative } = this.#settings;
    const [biases, half, steps] = [this.#biases, this.#half, this.#steps];
    const one = (rows: number) => rows;
    if (nonnegative) return { compiled: await this.#gpu.compile(solveNonnegativeKernel, { rank, biases, half }), workgroups: one };
    if (solver === 'cholesky') {
      const params = chooseSolveCholesky(rank, biases, half, { bytes: this.#gpu.info.limits.workgroupBytes });
      return { compiled: await this.#gpu.compile(solveCholeskyKernel, params), workgroups: one };
    }
    if (variant.registers) return { compiled: await this.#gpu.compile(solveCgRegistersKernel, { rank, steps, halfA: variant.halfA, biases, half }), workgroups: one };
    const params: SolveCgParams = { rank, steps, a: variant.halfA ? 'f16' : 'f32', biases, half };
    return { compiled: await this.#gpu.compile(solveCgKernel, params), workgroups: (rows) => solveCgWorkgroups(params, rows) };
  }
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`update: no ${what}`);
  return value;
}
