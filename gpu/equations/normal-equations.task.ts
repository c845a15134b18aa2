import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import type { DeviceBlock } from '../device/resources.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { addCentred } from '../update/centred.ts';
import { variantNamed } from '../update/choice/choose.ts';
import type { UpdateSettings, UpdateVariant } from '../update/choice/variant.ts';
import { summingVariant } from '../update/choice/variants.ts';
import { type PreparedRows, prepareRows } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { addSlotsKernel } from './equation-slots.ts';
import { compileSum } from './slot-kernels.ts';

/**
 * The task `normal-equations` (see KernelTasks) on a GPU: adds the ratings of the rows [from, to) to their
 * normal equations, in one submission. One kernel sums A and b of parts of rows into slots (scratch memory), and
 * another adds each row's slots to its row of `equations`.
 */
export const normalEquations: GpuTaskHandler<'normal-equations'> = async (scope) => {
  const { gpu } = scope;
  const { from, to, rank, rowStart = 0, mean = 0, implicit, variant: name, ratingScale = 1 } = scope.params;
  if (name === undefined) throw new Error('task normal-equations: the device chose no variant');
  const fixedBias = scope.has('fixedBias') ? scope.vector('fixedBias') : undefined;
  const biases = fixedBias !== undefined;
  const variant = summingNamed(gpu, name, { rank, biases, implicit: implicit !== undefined });
  const settings = { variant, from, to, rank, mean, implicit };
  const [block, equations] = [scope.block('block'), scope.matrix('equations')];
  const half = variant.precision !== 'f32';
  const fixed = half ? await scope.matrixWithHalf('fixed') : scope.matrix('fixed');
  const columns = equationColumns(rank, biases);
  if (equations.columns !== columns)
    throw new Error(
      `task normal-equations: rank ${rank}${biases ? ' with biases' : ''} needs ${columns} columns, ` +
        `and there are ${equations.columns}`,
    );
  const rows = await prepareSummed(gpu, block, settings, fixed.rows, biases);
  const pass = gpu.pass(`normal-equations ${variant.name}`);
  if (rows.batches.length > 0) {
    const [sum, add] = await compileSummed(gpu, settings, biases);
    const bindings = {
      indices: block.indices,
      values: await addCentred(gpu, pass, { block, fixedBias }, settings),
      fixed: half ? (fixed.half as GPUBuffer) : fixed.values,
      fixed_bias: fixedBias ?? block.values,
      slots: await gpu.scratch('slots', rows.slotBytes),
    };
    const uniforms = {
      zero_row: fixed.rows,
      scale: ratingScale,
      unscale: 1 / ratingScale,
      mean,
      ...(implicit ?? { alpha: 0, base: 0 }),
    };
    for (const { parts, partCount, rows: work, rowCount } of rows.batches)
      pass
        .dispatch(
          sum.compiled,
          { ...bindings, work: parts },
          { ...uniforms, count: partCount },
          sum.workgroups(partCount),
        )
        .dispatch(
          add,
          { work, slots: bindings.slots, equations: equations.values },
          { count: rowCount, row_start: rowStart, stride: equations.stride },
          rowCount,
        );
  }
  await pass.submit({ submitted: scope.submitted });
  return { rows: to - from };
};

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
 * Makes the lists of the rows [from, to) that have ratings. Rows of any length are summed into slots, in batches
 * whose slots fit memory; see prepareRows.
 */
export function prepareSummed(
  gpu: Gpu,
  block: DeviceBlock,
  { variant, from, to, rank }: Pick<UpdateSettings, 'variant' | 'from' | 'to' | 'rank'>,
  fixedRows: number,
  biases: boolean,
): Promise<PreparedRows> {
  const { fused: _fused, ...unfused } = variant;
  const settings = { variant: { ...unfused, short: 0 }, from, to, rank, lambda: 0 };
  return prepareRows(gpu, block, settings, fixedRows, biases, true);
}

/** Compiles the two kernels: the first sums parts of rows into slots, the second adds slots to equations. */
export function compileSummed(
  gpu: Gpu,
  settings: Pick<UpdateSettings, 'variant' | 'rank' | 'implicit'>,
  biases: boolean,
) {
  return Promise.all([
    compileSum(gpu, settings, biases),
    gpu.compile(addSlotsKernel, { rank: settings.rank, biases }),
  ]);
}
