import type { TaskHandler } from '../../handler.ts';

/** See `shrink-rows` of KernelTasks. */
export const shrinkRows: TaskHandler<'shrink-rows'> = (scope) => {
  const { from, to, rate, offset, damping, own, one, adaptive } = scope.params;
  const { pointer, stride } = scope.matrix('factors');
  const { buffer } = scope.memory;
  const factors = new Float32Array(buffer, pointer, to * stride);
  const sums = adaptive ? new Float32Array(buffer, scope.matrix('sums').pointer, to) : undefined;
  for (let row = from; row < to; row++) {
    const gamma = sums === undefined ? rate : rate / Math.sqrt(1 + sums[row]);
    const [factor, ofBias] = [1 / (1 + gamma * offset), 1 / (1 + gamma * damping)];
    const first = row * stride;
    const bias = own === undefined ? 0 : factors[first + own];
    for (let k = first; k < first + stride; k++) factors[k] *= factor;
    if (own !== undefined) factors[first + own] = bias * ofBias;
    if (one !== undefined) factors[first + one] = 1;
  }
  return { rows: to - from };
};
