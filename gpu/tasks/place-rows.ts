import type { GpuTaskHandler } from '../handler.ts';
import { addHalf } from '../kernels/copies/to-half.ts';
import { EXCHANGE_BUFFERS } from '../webgpu/staging.ts';

/** See `place-rows` of KernelTasks: copies of buffers, of half mirrors as well. Rows that came from another GPU go straight to their place. */
export const placeRows: GpuTaskHandler<'place-rows'> = async (scope) => {
  const { gpu, params: { rowFrom } } = scope;
  const [came, whole] = [scope.wire('rows'), scope.matrixOrHalf('whole')];
  const encoder = gpu.device.createCommandEncoder({ label: 'place-rows' });
  const copy = (from: GPUBuffer, to: GPUBuffer, offset: number, bytes: number) => encoder.copyBufferToBuffer(from, 0, to, offset, bytes);
  if (whole === undefined) {
    const [part, all] = [scope.vector('rows'), scope.vector('whole')];
    const bytes = scope.partition('rows').columns.values.byteLength;
    copy(part, all, 4 * rowFrom, bytes);
    gpu.device.queue.submit([encoder.finish()]);
    return { rows: bytes / 4 };
  }
  const { stride, values, half } = whole;
  if (came !== undefined) {
    const target = came instanceof Uint16Array ? half : values;
    if (target === undefined || (whole.halfOnly && target === values)) throw new Error('task place-rows: the rows and the matrix are in different precisions');
    await gpu.upload(target, came, rowFrom * stride * came.BYTES_PER_ELEMENT, EXCHANGE_BUFFERS);
    if (half !== undefined && target === values) {
      const pass = gpu.pass('half mirror');
      await addHalf(gpu, pass, whole);
      await pass.submit();
    }
    return { rows: came.length / stride };
  }
  const part = half === undefined ? scope.matrix('rows') : await scope.matrixWithHalf('rows');
  if (part.stride !== stride) throw new Error('task place-rows: the rows and the matrix are of different shapes');
  if (!whole.halfOnly) copy(part.values, values, 4 * rowFrom * stride, 4 * part.rows * stride);
  if (half !== undefined && part.half !== undefined) copy(part.half, half, 2 * rowFrom * stride, 2 * part.rows * stride);
  gpu.device.queue.submit([encoder.finish()]);
  return { rows: part.rows };
};
