import type { GpuTaskHandler } from '../../handler.ts';
import { addHalf } from '../../kernels/copies/to-half.ts';

/** See `place-rows` of KernelTasks. Copies that are submitted later see this one. */
export const placeRows: GpuTaskHandler<'place-rows'> = async (scope) => {
  const { rowFrom } = scope.params;
  const { gpu } = scope;
  const encoder = gpu.device.createCommandEncoder({ label: 'place-rows' });
  if (!scope.hasMatrix('rows')) {
    const [part, whole] = [scope.vector('rows'), scope.vector('whole')];
    const { rows } = scope.partition('rows');
    encoder.copyBufferToBuffer(part, 0, whole, 4 * rowFrom, 4 * rows);
    gpu.device.queue.submit([encoder.finish()]);
    return { rows };
  }
  const [part, whole] = [scope.matrix('rows'), scope.matrix('whole')];
  if (part.stride !== whole.stride) throw new Error(`task place-rows: rows of ${part.columns} numbers do not fit rows of ${whole.columns}`);
  const numbers = part.rows * part.stride;
  encoder.copyBufferToBuffer(part.values, 0, whole.values, 4 * rowFrom * whole.stride, 4 * numbers);
  if (part.half !== undefined && whole.half !== undefined) encoder.copyBufferToBuffer(part.half, 0, whole.half, 2 * rowFrom * whole.stride, 2 * numbers);
  gpu.device.queue.submit([encoder.finish()]);
  if (part.half === undefined && whole.half !== undefined) {
    const pass = gpu.pass('half mirror of placed rows');
    await addHalf(gpu, pass, whole);
    await pass.submit({ submitted: scope.submitted });
  }
  return { rows: part.rows };
};
