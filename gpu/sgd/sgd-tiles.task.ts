import { sgdTilesKernel, tileBatches } from './sgd-tiles.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { batchOrder } from './sorting/batch-order.ts';
import { begin, copySums, end, steppedFactors } from './stepped.ts';
import { tileLists } from './sorting/tile-lists.ts';

/**
 * The task `sgd-tiles` (see KernelTasks) on a GPU: one epoch of SGD in one submission. Each workgroup
 * processes the ratings of one tile, a set of columns.
 */
export const sgdTiles: GpuTaskHandler<'sgd-tiles'> = async (scope) => {
  const {
    rank,
    biases,
    rate,
    rowLambda,
    columnLambda,
    adaptive,
    tiles,
    lanes,
    threads,
    precision,
    arithmetic,
    level,
    seed,
    epoch,
  } = scope.params;
  const { gpu } = scope;
  const block = scope.block('block');
  const factors = await steppedFactors(scope, precision, adaptive);
  const lists = await tileLists(gpu, block, factors.columns.rows, tiles, level);
  const params = {
    features: rank + (biases ? 2 : 0),
    precision,
    arithmetic,
    places: lists.places,
    threads,
    lanes,
    biases,
    adaptive,
  };
  const kernel = await gpu.compile(sgdTilesKernel, params);
  const pass = gpu.pass('sgd-tiles');
  await begin(scope, pass, factors, scope.matrix('sourceRows'), scope.matrix('sourceColumns'));
  if (adaptive) copySums(scope);
  const { starts, ratings, columns } = lists;
  const rowBytes = factors.rows.rows * factors.rows.stride * (precision === 'f16' ? 2 : 4);
  const batches = tileBatches(lists.largest, rowBytes, params);
  const order = { batches, ...batchOrder(batches, seed, epoch) };
  pass.dispatch(
    kernel,
    { starts, ratings, columns, ...factors.bindings },
    { tiles, rate, row_lambda: rowLambda, column_lambda: columnLambda, level, ...order },
    tiles,
  );
  await end(scope, pass, factors);
  await pass.submit({ submitted: scope.submitted });
  return { rows: block.ratings };
};
