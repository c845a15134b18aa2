import type { RowsTask } from '../../operators/tasks/tasks.ts';
import type { DeviceBlock } from '../device/resources.ts';
import { fillSlotsKernel } from '../equations/equation-slots.ts';
import { compileSummed, prepareSummed, summingNamed } from '../equations/normal-equations.task.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { variantNamed } from '../update/choice/choose.ts';
import { nameOf, solverOf } from '../update/choice/variant.ts';
import { prepareRows } from '../update/prepared-rows.ts';
import type { Gpu } from '../webgpu/gpu.ts';

/**
 * See `upload` of KernelTasks. The inputs have been uploaded before the handler starts, as for every task.
 * The handler prepares lists of rows and kernels for later tasks, and waits if a kernel computes the block's
 * values.
 */
export const upload: GpuTaskHandler<'upload'> = async (scope) => {
  const { rows } = scope.params;
  if (rows !== undefined) await prepareFor(scope.gpu, scope.block('data'), rows);
  if (scope.has('transposeOf')) {
    scope.submitted();
    await scope.block('data').filled;
  }
  return { rows: 0 };
};

async function prepareFor(
  gpu: Gpu,
  block: DeviceBlock,
  { kernel, params, biases, columns }: RowsTask,
): Promise<void> {
  const { rank, variant: name } = params;
  if (name === undefined) throw new Error(`task upload: the device chose no variant of ${kernel}`);
  const whole = { rank, from: 0, to: block.rows };
  if (kernel === 'normal-equations') {
    const { implicit } = params;
    const variant = summingNamed(gpu, name, { rank, biases, implicit: implicit !== undefined });
    // The task that needs a kernel reports its errors.
    for (const compiling of [
      compileSummed(gpu, { variant, rank, implicit }, biases),
      gpu.compile(fillSlotsKernel, { rank, biases }),
    ])
      compiling.catch(() => undefined);
    await prepareSummed(gpu, block, { ...whole, variant }, columns, biases);
    return;
  }
  const { cgSteps } = params;
  const solver = solverOf(params);
  const implicit = kernel === 'update-implicit';
  const variant = variantNamed(name, gpu.info, { rank, biases, implicit, cgSteps, solver: nameOf(solver) });
  await prepareRows(
    gpu,
    block,
    { ...(kernel === 'update' ? params : { lambda: 0 }), ...whole, variant },
    columns,
    biases,
  );
}
