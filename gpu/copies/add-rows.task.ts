import { type DeviceMatrix, numberBytes } from '../device/resources.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { addHalf } from './to-half.ts';
import { addMatrixKernel, addMatrixWorkgroups } from '../equations/add-matrix.ts';

/** See `add-rows` of KernelTasks. */
export const addRows: GpuTaskHandler<'add-rows'> = async (scope) => {
  const { from, to } = scope.params;
  const sum = scope.matrix('sum');
  const addend = (await receivedRows(scope, sum)) ?? scope.matrix('addend');
  if (addend.rows !== sum.rows || addend.columns !== sum.columns)
    throw new Error(
      `task add-rows: ${addend.rows} x ${addend.columns} numbers cannot be added to ${sum.rows} x ` +
        `${sum.columns}`,
    );
  const quads = sum.stride / 4;
  const fours = (to - from) * quads;
  const pass = scope.gpu.pass('add-rows');
  pass.dispatch(
    await scope.gpu.compile(addMatrixKernel, {}),
    { addend: addend.values, sum: sum.values },
    { first: from * quads, fours },
    addMatrixWorkgroups(fours),
  );
  if (sum.half !== undefined) await addHalf(scope.gpu, pass, sum);
  await pass.submit({ submitted: scope.submitted });
  return { rows: to - from };
};

/**
 * The addend if its rows come from another GPU: uploaded as a matrix with the sum's stride. Undefined if the
 * addend is a matrix of this GPU.
 */
async function receivedRows(
  { gpu, wire }: GpuScopeOf<'add-rows'>,
  { columns, stride }: DeviceMatrix,
): Promise<DeviceMatrix | undefined> {
  const came = wire('addend');
  if (came === undefined) return undefined;
  const values = await gpu.scratch('addend', came.bytes);
  await gpu.takeIn(values, came);
  return { rows: came.bytes / numberBytes(came) / stride, columns, stride, values };
}
