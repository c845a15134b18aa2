import type { TaskHandler } from '../../handler.ts';

/** See `copy-rows` of KernelTasks. */
export const copyRows: TaskHandler<'copy-rows'> = (scope) => {
  const { from, to } = scope.params;
  const [source, target] = [scope.matrix('source'), scope.matrix('target')];
  const elements = new Float32Array(scope.memory.buffer);
  const first = source.pointer / 4 + from * source.stride;
  elements.copyWithin(target.pointer / 4 + from * target.stride, first, first + (to - from) * source.stride);
  return { rows: to - from };
};
