import { solveCgRegistersKernel, normalEquationsTensorKernel, updateTensorKernel } from '../descriptors/tensor.ts';
import { updateShortKernel } from '../descriptors/update-short.ts';
import type { CompiledKernel, Gpu } from '../gpu.ts';
import type { Binding, KernelTimes, Pass } from '../pass.ts';
import type { DeviceBlock, DeviceMatrix } from '../resources.ts';
import { prepareRows, type PreparedRows } from './prepared-rows.ts';
import type { UpdateVariant } from './variant.ts';

export interface UpdateInputs {
  readonly block: DeviceBlock;
  /** θ; with its half mirror where the variant gathers float16. */
  readonly fixed: DeviceMatrix;
  /** x of the last iteration. */
  readonly previous: DeviceMatrix;
  /** x to be written, and its half mirror where the variant writes one. */
  readonly factors: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly previousBias?: GPUBuffer;
  readonly bias?: GPUBuffer;
}

export interface UpdateSettings {
  readonly variant: UpdateVariant;
  readonly from: number;
  readonly to: number;
  readonly rank: number;
  readonly lambda: number;
  /** μ where there are biases. */
  readonly mean: number;
  /** 'cholesky', or so many steps of CG. */
  readonly solver: 'cholesky' | { readonly steps: number };
  /** Power of two that keeps the ratings within float16. */
  readonly scale: number;
}

/** Workgroups of one subgroup that walk the short rows: enough to fill any GPU. */
const SHORT_WORKGROUPS = 132 * 32;

/** Number of no row. */
const NO_ROW = 0xffff_ffff;

/**
 * Solves the rows [from, to) of a block: one submission. Returns the first row whose solution is not finite, or -1, and the
 * kernels' times where they were asked for.
 */
export async function updateRows(gpu: Gpu, inputs: UpdateInputs, settings: UpdateSettings, timed = false): Promise<{ readonly badRow: number; readonly times: KernelTimes }> {
  const { block, fixed, previous, factors } = inputs;
  const { variant, rank, lambda, mean, scale } = settings;
  const biases = inputs.bias !== undefined;
  const rows = await prepareRows(gpu, block, settings, fixed.rows, lambda > 0 ? variant.short : 0);
  const nothing = await gpu.scratch('nothing', 16);
  const status = await gpu.scratch('status', 16);
  gpu.device.queue.writeBuffer(status, 0, new Uint32Array([NO_ROW]));
  const half = variant.precision === 'f16';
  const shared = {
    indices: block.indices,
    values: block.values,
    fixed: half ? required(fixed.half, 'half mirror of the fixed factors') : fixed.values,
    fixed_bias: inputs.fixedBias ?? nothing,
    previous: previous.values,
    previous_bias: inputs.previousBias ?? nothing,
    factors: factors.values,
    // A buffer that is written may be bound once only.
    half: half ? required(factors.half, 'half mirror of the factors') : await gpu.scratch('no half', 16),
    bias: inputs.bias ?? (await gpu.scratch('no bias', 16)),
    status,
  };
  const uniforms = { zero_row: fixed.rows, scale, unscale: 1 / scale, lambda, mean };
  const pass = gpu.pass(`update ${variant.name}`);
  await addKernels(gpu, pass, rows, settings, biases, shared, uniforms);
  const { times, bytes } = await pass.submit({ timed, read: { buffer: status, bytes: 4 } });
  const [bad] = new Uint32Array(bytes);
  return { badRow: bad === NO_ROW ? -1 : bad, times };

  async function addKernels(gpu: Gpu, pass: Pass, rows: PreparedRows, settings: UpdateSettings, biases: boolean, shared: Readonly<Record<string, Binding>>, uniforms: Readonly<Record<string, number>>) {
    const { solver } = settings;
    if (rows.batches.length > 0) {
      const sum = await compileSum(gpu, settings, biases);
      const solve = await compileSolve(gpu, settings, biases);
      const slots = await gpu.scratch('slots', rows.slotBytes);
      for (const batch of rows.batches) {
        pass.dispatch(sum.compiled, { ...shared, work: batch.parts, slots }, { ...uniforms, count: batch.partCount }, sum.workgroups(batch.partCount));
        pass.dispatch(solve, { ...shared, work: batch.rows, slots }, { ...uniforms, count: batch.rowCount }, batch.rowCount);
      }
    }
    for (const { longest, entries, count } of rows.short) {
      const compiled = await gpu.compile(updateShortKernel, { rank, longest, biases });
      pass.dispatch(compiled, { ...shared, work: entries }, { ...uniforms, count }, Math.min(count, SHORT_WORKGROUPS));
    }
    if (rows.fused !== undefined && variant.fused !== undefined) {
      const steps = solver === 'cholesky' ? 0 : solver.steps;
      const compiled = await gpu.compile(updateTensorKernel, { rank, bin: variant.bin, depth: variant.depth, touch: variant.touch, biases, steps, halfA: variant.halfA, prefetch: variant.fused.prefetch, touchNext: variant.fused.touchNext });
      pass.dispatch(compiled, { ...shared, work: rows.fused.entries }, { ...uniforms, count: rows.fused.count }, Math.min(variant.fused.workgroups, rows.fused.count));
    }
  }
}

interface CompiledSum {
  readonly compiled: CompiledKernel;
  workgroups(parts: number): number;
}

async function compileSum(gpu: Gpu, { variant, rank }: UpdateSettings, biases: boolean): Promise<CompiledSum> {
  const compiled = await gpu.compile(normalEquationsTensorKernel, { rank, bin: variant.bin, depth: variant.depth, touch: variant.touch, biases });
  return { compiled, workgroups: (parts) => parts };
}

async function compileSolve(gpu: Gpu, { variant, rank, solver }: UpdateSettings, biases: boolean): Promise<CompiledKernel> {
  if (solver === 'cholesky') throw new Error('no Cholesky');
  return gpu.compile(solveCgRegistersKernel, { rank, steps: solver.steps, halfA: variant.halfA, biases, half: variant.precision === 'f16' });
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`update: no ${what}`);
  return value;
}
