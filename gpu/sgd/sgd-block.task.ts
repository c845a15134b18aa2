import { sgdListKernel } from './sgd-list.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { begin, end, steppedFactors } from './stepped.ts';

/**
 * Threads of a workgroup. The plan gives the number of teams (`workers`) and the threads of each (`lanes`),
 * from which the number of workgroups follows.
 */
const THREADS = 128;

/**
 * The task `sgd-block` (see KernelTasks) on a GPU: SGD on a shuffled list of ratings (layout rating-list).
 * The teams of all workgroups update the factors without locks (batch-Hogwild!, cuMF_SGD).
 */
export const sgdBlock: GpuTaskHandler<'sgd-block'> = async (scope) => {
  const {
    rank,
    biases,
    rate,
    rowLambda,
    columnLambda,
    adaptive,
    from = 0,
    to = 0,
    batch,
    lanes = 1,
    workers = 1,
    precision = 'f32',
  } = scope.params;
  if (batch === undefined)
    throw new Error('task sgd-block: a GPU steps lists of ratings; blocks are for threads of a CPU');
  const { gpu } = scope;
  const list = scope.list('block');
  const order = scope.partition('order').columns.order as Uint32Array;
  const factors = await steppedFactors(scope, precision, adaptive);
  const params = { features: rank + (biases ? 2 : 0), precision, threads: THREADS, lanes, biases, adaptive };
  const kernel = await gpu.compile(sgdListKernel, params);
  const orderBuffer = await gpu.scratch('batch order', order.byteLength);
  await gpu.upload(orderBuffer, order);
  const pass = gpu.pass('sgd-list');
  await begin(scope, pass, factors, factors.rows, factors.columns);
  const uniforms = {
    ratings: list.ratings,
    first_batch: from,
    last_batch: to,
    batch,
    rate,
    row_lambda: rowLambda,
    column_lambda: columnLambda,
  };
  const { rows, columns, values } = list;
  pass.dispatch(
    kernel,
    { rows, columns, values, order: orderBuffer, ...factors.bindings },
    uniforms,
    Math.ceil((workers * lanes) / THREADS),
  );
  await end(scope, pass, factors);
  await pass.submit({ submitted: scope.submitted });
  return { rows: list.ratings };
};
