import type { GpuTaskHandler } from '../handler.ts';
import { variantNamed } from '../update/choose.ts';
import { prepareRows } from '../update/prepared-rows.ts';

/** See `upload` of KernelTasks: what a task names is there when it begins. */
export const upload: GpuTaskHandler<'upload'> = async (scope) => {
  const { rows: dealt } = scope.params;
  if (dealt === undefined) return { rows: 0 };
  const { rank, biases, cgBelow, cgSteps, nonnegative, columns } = dealt;
  const solver = cgBelow > 0 ? ({ steps: cgSteps } as const) : 'cholesky';
  const variant = variantNamed(dealt.variant, scope.gpu.info, { rank, biases, cgSteps, nonnegative, solver: solver === 'cholesky' ? 'cholesky' : 'cg' });
  const block = scope.block('data');
  await prepareRows(scope.gpu, block, { ...dealt, variant, solver, from: 0, to: block.rows }, columns, biases);
  return { rows: 0 };
};
