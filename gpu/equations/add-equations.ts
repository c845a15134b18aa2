import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { addSlotsKernel } from '../kernels/equations/add-slots.ts';
import { addCentred } from '../update/centred.ts';
import { prepareRows } from '../update/prepared-rows.ts';
import { compileSum } from '../update/slot-kernels.ts';
import type { UpdateSettings } from '../update/variant.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelTimes, SubmitOptions } from '../webgpu/pass.ts';

export interface AddInputs {
  readonly block: DeviceBlock;
  /** θ, with its half mirror when the variant gathers float16. */
  readonly fixed: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly equations: DeviceMatrix;
}

/** `rowStart`: the row of the block whose equations are the first. */
export interface AddSettings extends Pick<UpdateSettings, 'variant' | 'from' | 'to' | 'rank' | 'mean' | 'scale' | 'implicit'> {
  readonly rowStart: number;
}

/**
 * Adds the ratings of the rows [from, to) of a block to their equations in one submission: the variant's kernel sums parts of rows to slots,
 * as it does for rows that another kernel solves, and each row's slots go to its equations. With `timed` gives the kernels' times.
 */
export async function addEquations(gpu: Gpu, { block, fixed, fixedBias, equations }: AddInputs, settings: AddSettings, options: Pick<SubmitOptions, 'timed' | 'submitted'> = {}): Promise<KernelTimes> {
  const { rank, mean, scale, rowStart, implicit } = settings;
  const { fused: _fused, ...variant } = settings.variant;
  const biases = fixedBias !== undefined;
  const rows = await prepareRows(gpu, block, { ...settings, variant: { ...variant, short: 0, free: false }, lambda: 0, solver: 'cholesky' }, fixed.rows, biases, true);
  const pass = gpu.pass(`normal-equations ${variant.name}`);
  if (rows.batches.length > 0) {
    const [sum, add] = await Promise.all([compileSum(gpu, settings, biases), gpu.compile(addSlotsKernel, { rank, biases })]);
    const values = await addCentred(gpu, pass, { block, fixedBias }, settings);
    const slots = await gpu.scratch('slots', rows.slotBytes);
    const gathered = variant.precision === 'f32' ? fixed.values : fixed.half;
    if (gathered === undefined) throw new Error('normal-equations: no half mirror of the fixed factors');
    const bindings = { indices: block.indices, values, fixed: gathered, fixed_bias: fixedBias ?? block.values, slots };
    const uniforms = { zero_row: fixed.rows, scale, unscale: 1 / scale, mean, ...(implicit ?? { alpha: 0, base: 0 }) };
    for (const batch of rows.batches) {
      pass.dispatch(sum.compiled, { ...bindings, work: batch.parts }, { ...uniforms, count: batch.partCount }, sum.workgroups(batch.partCount));
      pass.dispatch(add, { work: batch.rows, slots, equations: equations.values }, { count: batch.rowCount, row_start: rowStart, stride: equations.stride }, batch.rowCount);
    }
  }
  return (await pass.submit(options)).times;
}
