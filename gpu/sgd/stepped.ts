import type { DeviceMatrix } from '../device/resources.ts';
import type { GpuTaskScope } from '../handler.ts';
import { fromHalfKernel, fromHalfWorkgroups } from '../copies/from-half.ts';
import { addHalf } from '../copies/to-half.ts';
import type { Pass } from '../webgpu/pass.ts';

/**
 * The factors of rows and columns while a kernel of SGD updates them. If factors are stored in float16, the
 * kernel updates the float16 copies, and `end` converts them to float32.
 */
export interface Stepped {
  readonly rows: DeviceMatrix;
  readonly columns: DeviceMatrix;
  readonly precision: 'f32' | 'f16';
  readonly bindings: Readonly<
    Record<'row_factors' | 'column_factors' | 'row_sums' | 'column_sums', GPUBuffer>
  >;
}

export async function steppedFactors(
  scope: GpuTaskScope,
  precision: 'f32' | 'f16',
  adaptive: boolean,
): Promise<Stepped> {
  const half = precision === 'f16';
  const matrix = (name: string) => (half ? scope.matrixWithHalf(name) : scope.matrix(name));
  const [rows, columns] = [await matrix('rows'), await matrix('columns')];
  const stored = (one: DeviceMatrix) => (half ? (one.half as GPUBuffer) : one.values);
  const sums = async (name: string) =>
    adaptive ? scope.matrix(name).values : scope.gpu.scratch(`no ${name}`, 16);
  const bindings = {
    row_factors: stored(rows),
    column_factors: stored(columns),
    row_sums: await sums('rowSums'),
    column_sums: await sums('columnSums'),
  };
  return { rows, columns, precision, bindings };
}

/**
 * Before the kernel: copies the factors `rows` and `columns` to the buffers that the kernel updates, rounded
 * to float16 if it updates float16. In float32 nothing is copied if a source is also the buffer to update. It
 * takes a fraction of a millisecond.
 */
export async function begin(
  scope: GpuTaskScope,
  pass: Pass,
  stepped: Stepped,
  rows: DeviceMatrix,
  columns: DeviceMatrix,
): Promise<void> {
  for (const [source, target] of [
    [rows, stepped.rows],
    [columns, stepped.columns],
  ] as const) {
    if (stepped.precision === 'f16' && target.half !== undefined) {
      await addHalf(scope.gpu, pass, { ...source, half: target.half });
    } else if (source.values !== target.values)
      copyBuffer(scope, source.values, target.values, source.rows * source.stride * 4);
  }
}

/**
 * Copies AdaGrad's sums of squared gradients from the inputs to the outputs, unless these are the same
 * buffers.
 */
export function copySums(scope: GpuTaskScope): void {
  for (const [from, to] of [
    ['sourceRowSums', 'rowSums'],
    ['sourceColumnSums', 'columnSums'],
  ]) {
    const [source, target] = [scope.matrix(from), scope.matrix(to)];
    if (source.values !== target.values)
      copyBuffer(scope, source.values, target.values, source.rows * source.stride * 4);
  }
}

/** After the kernel: converts the updated factors from float16 to float32, if the kernel updates float16. */
export async function end(
  scope: GpuTaskScope,
  pass: Pass,
  { rows, columns, precision }: Stepped,
): Promise<void> {
  if (precision === 'f32') return;
  const kernel = await scope.gpu.compile(fromHalfKernel, {});
  for (const { half, values, rows: count, stride } of [rows, columns]) {
    if (half === undefined) throw new Error('a stepped matrix has no half mirror');
    const quads = (count * stride) / 4;
    pass.dispatch(kernel, { half, factors: values }, { quads }, fromHalfWorkgroups(quads));
  }
}

function copyBuffer({ gpu }: GpuTaskScope, source: GPUBuffer, target: GPUBuffer, bytes: number): void {
  const encoder = gpu.device.createCommandEncoder({ label: 'copy' });
  encoder.copyBufferToBuffer(source, 0, target, 0, bytes);
  // The copy runs before all commands that are submitted later.
  gpu.device.queue.submit([encoder.finish()]);
}
