import type { GpuTaskHandler } from '../handler.ts';
import { equationValues, addSlotsKernel } from './equation-slots.ts';
import type { DeviceBlock, DeviceMatrix } from '../device/resources.ts';
import { addCentred } from '../update/centred.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { type PreparedRows, prepareRows } from '../update/prepared-rows.ts';
import { compileSum } from './slot-kernels.ts';
import type { UpdateSettings, UpdateVariant } from '../update/choice/variant.ts';
import { summingVariant } from '../update/choice/variants.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { CompiledKernel, SizedKernel } from '../webgpu/kernel.ts';
import type { KernelTimes, SubmitOptions } from '../webgpu/pass.ts';

/**
 * The task `normal-equations` (see KernelTasks) on a GPU: adds the ratings of the rows [from, to) to their
 * normal equations, in one submission.
 */
export const normalEquations: GpuTaskHandler<'normal-equations'> = async (scope) => {
  const { from, to, rank, rowStart = 0, mean = 0, implicit, variant: name, ratingScale = 1 } = scope.params;
  if (name === undefined) throw new Error('task normal-equations: the device chose no variant');
  const biases = scope.has('fixedBias');
  const variant = summingNamed(scope.gpu, name, { rank, biases, implicit: implicit !== undefined });
  const inputs = {
    block: scope.block('block'),
    fixed: variant.precision !== 'f32' ? await scope.matrixWithHalf('fixed') : scope.matrix('fixed'),
    fixedBias: biases ? scope.vector('fixedBias') : undefined,
    equations: scope.matrix('equations'),
  };
  const { COLUMNS: columns } = equationValues({ rank, biases });
  if (inputs.equations.columns !== columns)
    throw new Error(
      `task normal-equations: rank ${rank}${biases ? ' with biases' : ''} needs ${columns} columns, ` +
        `and there are ${inputs.equations.columns}`,
    );
  await addEquations(
    scope.gpu,
    inputs,
    { variant, from, to, rank, rowStart, mean, scale: ratingScale, implicit },
    { submitted: scope.submitted },
  );
  return { rows: to - from };
};

interface AddInputs {
  readonly block: DeviceBlock;
  /**
   * θ, the factors of the fixed side. If the variant's precision is not f32, θ must have its float16 copy
   * (`half`).
   */
  readonly fixed: DeviceMatrix;
  readonly fixedBias?: GPUBuffer;
  readonly equations: DeviceMatrix;
}

/**
 * Parameters of `addEquations`. `rowStart`: number of the block's row whose equations are row 0 of
 * `equations`.
 */
export interface AddSettings extends Pick<
  UpdateSettings,
  'variant' | 'from' | 'to' | 'rank' | 'mean' | 'scale' | 'implicit'
> {
  readonly rowStart: number;
}

/**
 * Finds the variant with this name, or a similar one, that computes normal equations. The name is searched
 * among the variants for the solver CG, since these include every name; the solver makes no difference here.
 */
export function summingNamed(
  { info }: Gpu,
  name: string,
  { rank, biases, implicit }: { readonly rank: number; readonly biases: boolean; readonly implicit: boolean },
): UpdateVariant {
  const shape = { rank, biases, implicit, cgSteps: 1, solver: 'cg' } as const;
  return summingVariant(info, variantNamed(name, info, shape), shape);
}

/**
 * Makes the lists of the rows [from, to) that have ratings, for `addEquations`. Rows of any length are summed
 * into slots (scratch memory for A and b), in batches whose slots fit memory; see prepareRows.
 */
export function prepareSummed(
  gpu: Gpu,
  block: DeviceBlock,
  {
    variant: { fused: _fused, ...variant },
    from,
    to,
    rank,
  }: Pick<AddSettings, 'variant' | 'from' | 'to' | 'rank'>,
  fixedRows: number,
  biases: boolean,
): Promise<PreparedRows> {
  return prepareRows(
    gpu,
    block,
    { variant: { ...variant, short: 0 }, from, to, rank, lambda: 0 },
    fixedRows,
    biases,
    true,
  );
}

/**
 * Compiles the two kernels of `addEquations`: `sum` computes A and b of parts of rows into slots, `add` adds
 * a row's slots to its equations.
 */
export async function compileSummed(
  gpu: Gpu,
  settings: Pick<AddSettings, 'variant' | 'rank' | 'implicit'>,
  biases: boolean,
): Promise<{ readonly sum: SizedKernel; readonly add: CompiledKernel }> {
  const [sum, add] = await Promise.all([
    compileSum(gpu, settings, biases),
    gpu.compile(addSlotsKernel, { rank: settings.rank, biases }),
  ]);
  return { sum, add };
}

/**
 * Adds the terms of the ratings in the rows [from, to) of a block to the rows' normal equations, in one
 * submission. One kernel sums A and b of parts of rows into slots (scratch memory), and another adds each
 * row's slots to its row of `equations`. With `timed`, returns the kernels' times.
 */
export async function addEquations(
  gpu: Gpu,
  { block, fixed, fixedBias, equations }: AddInputs,
  settings: AddSettings,
  options: Pick<SubmitOptions, 'timed' | 'submitted'> = {},
): Promise<KernelTimes> {
  const { mean, scale, rowStart, implicit } = settings;
  const { variant } = settings;
  const biases = fixedBias !== undefined;
  const rows = await prepareSummed(gpu, block, settings, fixed.rows, biases);
  const pass = gpu.pass(`normal-equations ${variant.name}`);
  if (rows.batches.length > 0) {
    const { sum, add } = await compileSummed(gpu, settings, biases);
    const values = await addCentred(gpu, pass, { block, fixedBias }, settings);
    const slots = await gpu.scratch('slots', rows.slotBytes);
    const gathered = variant.precision === 'f32' ? fixed.values : fixed.half;
    if (gathered === undefined) throw new Error('normal-equations: no half mirror of the fixed factors');
    const bindings = {
      indices: block.indices,
      values,
      fixed: gathered,
      fixed_bias: fixedBias ?? block.values,
      slots,
    };
    const uniforms = {
      zero_row: fixed.rows,
      scale,
      unscale: 1 / scale,
      mean,
      ...(implicit ?? { alpha: 0, base: 0 }),
    };
    for (const batch of rows.batches) {
      pass.dispatch(
        sum.compiled,
        { ...bindings, work: batch.parts },
        { ...uniforms, count: batch.partCount },
        sum.workgroups(batch.partCount),
      );
      pass.dispatch(
        add,
        { work: batch.rows, slots, equations: equations.values },
        { count: batch.rowCount, row_start: rowStart, stride: equations.stride },
        batch.rowCount,
      );
    }
  }
  return (await pass.submit(options)).times;
}
