import type { GpuTaskHandler } from '../handler.ts';

/** See `copy-rows` of KernelTasks. */
export const copyRows: GpuTaskHandler<'copy-rows'> = async (scope) => {
  const { from, to } = scope.params;
  const [source, target] = [scope.matrix('source'), scope.matrix('target')];
  if (source.stride !== target.stride)
    throw new Error('task copy-rows: source and target are of different shapes');
  const rowBytes = 4 * source.stride;
  const encoder = scope.gpu.device.createCommandEncoder({ label: 'copy-rows' });
  encoder.copyBufferToBuffer(
    source.values,
    from * rowBytes,
    target.values,
    from * rowBytes,
    (to - from) * rowBytes,
  );
  // Not awaited: work that is submitted later sees the copy.
  scope.gpu.device.queue.submit([encoder.finish()]);
  return { rows: to - from };
};
