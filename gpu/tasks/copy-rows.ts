import type { CopyRowsTask } from '../../operators/tasks.ts';
import type { GpuTaskHandler } from '../handler.ts';

/** See CopyRowsTask. */
export const copyRows: GpuTaskHandler = async (scope) => {
  const { from, to } = scope.params as CopyRowsTask['params'];
  const [source, target] = [scope.matrix('source'), scope.matrix('target')];
  if (source.stride !== target.stride) throw new Error('task copy-rows: source and target are of different shapes');
  const rowBytes = 4 * source.stride;
  const encoder = scope.gpu.device.createCommandEncoder({ label: 'copy-rows' });
  encoder.copyBufferToBuffer(source.values, from * rowBytes, target.values, from * rowBytes, (to - from) * rowBytes);
  // What is submitted later sees it.
  scope.gpu.device.queue.submit([encoder.finish()]);
  return { rows: to - from };
};
