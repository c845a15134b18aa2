import { sgdWavesKernel } from './sgd-waves.ts';
import type { GpuTaskHandler } from '../handler.ts';
import { begin, copySums, end, steppedFactors } from './stepped.ts';
import { waveBlocks } from './sorting/wave-blocks.ts';

/**
 * The task `sgd-waves` (see KernelTasks) on a GPU: one epoch of SGD in one submission, with one dispatch for
 * each wave. In a wave, the workgroups process blocks that have no rows and no columns in common.
 */
export const sgdWaves: GpuTaskHandler<'sgd-waves'> = async (scope) => {
  const { rank, biases, rate, rowLambda, columnLambda, adaptive, lanes, precision, rowStarts, columnStarts } =
    scope.params;
  const { gpu } = scope;
  const block = scope.block('block');
  const order = scope.partition('order').columns.order as Uint32Array;
  const workers = rowStarts.length - 1;
  const factors = await steppedFactors(scope, precision, adaptive);
  const blocks = await waveBlocks(gpu, block, { rowStarts, columnStarts });
  const kernel = await gpu.compile(sgdWavesKernel, {
    features: rank + (biases ? 2 : 0),
    precision,
    lanes,
    biases,
    adaptive,
  });
  const orderBuffer = await gpu.scratch('wave order', order.byteLength);
  await gpu.upload(orderBuffer, order);
  const pass = gpu.pass('sgd-waves');
  await begin(scope, pass, factors, scope.matrix('sourceRows'), scope.matrix('sourceColumns'));
  if (adaptive) copySums(scope);
  const bindings = { ...blocks, order: orderBuffer, ...factors.bindings };
  const uniforms = {
    workers,
    column_bands: columnStarts.length - 1,
    rate,
    row_lambda: rowLambda,
    column_lambda: columnLambda,
  };
  for (let wave = 0; wave < order.length / workers; wave++)
    pass.dispatch(kernel, bindings, { ...uniforms, wave }, workers);
  await end(scope, pass, factors);
  await pass.submit({ submitted: scope.submitted });
  return { rows: block.ratings };
};
