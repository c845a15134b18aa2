import type { GpuTaskHandler } from '../../handler.ts';
import { addHalf } from '../../kernels/copies/to-half.ts';
import { addMatrixKernel, addMatrixWorkgroups } from '../../kernels/equations/add-matrix.ts';

/** See `add-rows` of KernelTasks. */
export const addRows: GpuTaskHandler<'add-rows'> = async (scope) => {
  const { from, to } = scope.params;
  const [addend, sum] = [scope.matrix('addend'), scope.matrix('sum')];
  if (addend.rows !== sum.rows || addend.columns !== sum.columns) throw new Error(`task add-rows: ${addend.rows} x ${addend.columns} numbers cannot be added to ${sum.rows} x ${sum.columns}`);
  const quads = sum.stride / 4;
  const fours = (to - from) * quads;
  const pass = scope.gpu.pass('add-rows');
  pass.dispatch(await scope.gpu.compile(addMatrixKernel, {}), { addend: addend.values, sum: sum.values }, { first: from * quads, fours }, addMatrixWorkgroups(fours));
  if (sum.half !== undefined) await addHalf(scope.gpu, pass, sum);
  await pass.submit({ submitted: scope.submitted });
  return { rows: to - from };
};
