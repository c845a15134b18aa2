import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { addHalf } from '../copies/to-half.ts';
import { addInt8 } from '../int8/to-int8.ts';
import { blockShifts } from '../solve/row-shifts.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { Binding, CompiledKernel } from '../webgpu/compiled-kernel.ts';
import type { Pass, SubmitOptions } from '../webgpu/pass.ts';
import { addCentred } from './centred.ts';
import { prepareRows, type PreparedRows } from './prepared-rows.ts';
import { type SolvedPass, submitSolved } from './solved-pass.ts';
import { compileForRows } from './update-kernels.ts';
import { stepsOf, type UpdateSettings } from './choice/variant.ts';
import { addVectorSteps } from '../vectors/steps.ts';

export interface UpdateInputs {
  readonly block: DeviceBlock;
  /**
   * θ. It needs its half mirror if the variant reads float16, or 8 bits, which are computed from the mirror.
   */
  readonly fixed: DeviceMatrix;
  /** x of the last iteration. */
  readonly previous: DeviceMatrix;
  /** x, which is written, with its half mirror when the variant writes one. */
  readonly factors: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly bias?: GPUBuffer;
  /** G of the fixed side (F x F); implicit data only. */
  readonly gram?: GPUBuffer;
  /** A shift for each row; where absent, computed from the settings' regularization. */
  readonly shifts?: GPUBuffer;
}

/**
 * Workgroups of one subgroup that take short rows from the list: enough to fill any GPU several times over.
 */
const SHORT_WORKGROUPS = 4224;

/**
 * Solves the rows [from, to) of a block in one submission. Returns the first row whose solution is not
 * finite, or -1; with `measured` also the sum of the objectives, and with `timed` the kernels' times.
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

/** Dispatches a kernel on `count` entries of a list. */
type AddKernel = (
  compiled: CompiledKernel,
  work: Readonly<Record<string, Binding>>,
  count: number,
  workgroups: number,
) => void;

/** Picks, compiles and dispatches the kernels of one half-iteration. */
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
        free: rows.free !== undefined,
        fused: rows.fused !== undefined,
        batches: rows.batches.length > 0,
        short: rows.short.map(({ longest }) => longest),
      },
    );
    const uniforms = this.#uniforms();
    await this.#addAll(pass, rows, kernels, (compiled, work, count, workgroups) => {
      pass.dispatch(compiled, { ...bindings, ...work }, { ...uniforms, count }, workgroups);
    });
    // The kernel without A does not write the half mirror. So the mirror of all rows is computed afterwards,
    // which is cheap in comparison.
    if (this.#half && rows.free !== undefined) await addHalf(this.#gpu, pass, this.#inputs.factors);
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

  /** Order of submission: rows without A, rows in slots batch by batch, dual systems, fused rows. */
  async #addAll(
    pass: Pass,
    rows: PreparedRows,
    { free, sum, gram, solve, short, fused }: Awaited<ReturnType<typeof compileForRows>>,
    add: AddKernel,
  ): Promise<void> {
    const { sum: kind, fused: form } = this.#settings.variant;
    if (rows.free !== undefined && free !== undefined) {
      this.#startFree();
      add(free.compiled, { work: rows.free.entries }, rows.free.count, free.workgroups(rows.free.count));
    }
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
      add(short[i], { work: entries }, count, Math.min(count, SHORT_WORKGROUPS));
    if (rows.fused === undefined || fused === undefined) return;
    const { entries, count } = rows.fused;
    add(fused, { ...gathered, work: entries }, count, Math.min(form?.workgroups ?? 1, count));
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
      // WebGPU does not allow two bindings of one writable buffer, so each output that is absent gets its
      // own scratch buffer.
      half: this.#half
        ? required(factors.half, 'half mirror of the factors')
        : await this.#gpu.scratch('no half', 16),
      bias: bias ?? (await this.#gpu.scratch('no bias', 16)),
      status: this.#status,
      ...(gram ? { gram } : {}),
    };
  }

  /** Copies the last version of x to the outputs: CG without A starts from the values there. */
  #startFree(): void {
    const { previous, factors } = this.#inputs;
    const encoder = this.#gpu.device.createCommandEncoder({ label: 'start of short rows' });
    encoder.copyBufferToBuffer(previous.values, 0, factors.values, 0, previous.rows * previous.stride * 4);
    this.#gpu.device.queue.submit([encoder.finish()]);
  }
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`update: no ${what}`);
  return value;
}
