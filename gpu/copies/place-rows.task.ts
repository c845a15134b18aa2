import { type DeviceMatrix, numberBytes, type WireRows } from '../device/resources.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import { fromHalfKernel, addHalf, addPacked, addUnpacked } from './to-half.ts';

/**
 * See `place-rows` of KernelTasks: copies some rows into the matrix of all rows. Work that is submitted to
 * the GPU later sees them.
 */
export const placeRows: GpuTaskHandler<'place-rows'> = async (scope) => {
  const { rowFrom } = scope.params;
  const { gpu } = scope;
  const [came, whole] = [scope.wire('rows'), scope.matrixOrHalf('whole')];
  if (whole === undefined) return placeNumbers(scope);
  if (scope.params.rounded) return placeRounded(scope, whole, came);
  if (came !== undefined)
    return placeWire(
      scope,
      came.form === 'f16' && !whole.halfOnly ? await scope.matrixWithHalf('whole') : whole,
      came,
    );
  const encoder = gpu.device.createCommandEncoder({ label: 'place-rows' });
  const part = whole.halfOnly ? await scope.matrixWithHalf('rows') : scope.matrix('rows');
  if (part.stride !== whole.stride)
    throw new Error(`task place-rows: rows of ${part.columns} numbers do not fit rows of ${whole.columns}`);
  const numbers = part.rows * part.stride;
  if (!whole.halfOnly)
    encoder.copyBufferToBuffer(part.values, 0, whole.values, 4 * rowFrom * whole.stride, 4 * numbers);
  if (part.half !== undefined && whole.half !== undefined)
    encoder.copyBufferToBuffer(part.half, 0, whole.half, 2 * rowFrom * whole.stride, 2 * numbers);
  gpu.device.queue.submit([encoder.finish()]);
  if (part.half === undefined && whole.half !== undefined) await mirror(gpu, whole, scope.submitted);
  return { rows: part.rows };
};

/**
 * Writes rows, rounded to 8 bits, to the half mirror. Rows from another GPU are in 8 bits already; this GPU's
 * own rows are rounded here, so that all GPUs compute with the same numbers.
 */
async function placeRounded(
  scope: GpuScopeOf<'place-rows'>,
  whole: DeviceMatrix,
  came: WireRows | undefined,
): Promise<{ readonly rows: number }> {
  const { gpu, params, submitted } = scope;
  const pass = gpu.pass('rows from 8 bits');
  if (came === undefined) {
    const part = await scope.matrixWithHalf('rows');
    const packed = await addPacked(gpu, pass, part);
    await addUnpacked(gpu, pass, { packed, rows: part.rows }, whole, params.rowFrom);
    await pass.submit({ submitted });
    return { rows: part.rows };
  }
  // See packedBytes.
  const rows = came.bytes / whole.stride - 4;
  const packed = await gpu.scratch('received rows in 8 bits', came.bytes, { passage: true });
  await gpu.takeIn(packed, came);
  await addUnpacked(gpu, pass, { packed, rows }, whole, params.rowFrom);
  await pass.submit({ submitted });
  return { rows };
}

/** Copies some rows' biases into the vector of all rows' biases. */
function placeNumbers({ gpu, params: { rowFrom }, partition, vector }: GpuScopeOf<'place-rows'>): {
  readonly rows: number;
} {
  const { rows } = partition('rows');
  const encoder = gpu.device.createCommandEncoder({ label: 'place-rows' });
  encoder.copyBufferToBuffer(vector('rows'), 0, vector('whole'), 4 * rowFrom, 4 * rows);
  gpu.device.queue.submit([encoder.finish()]);
  return { rows };
}

/**
 * Writes rows from another GPU to their place in the matrix, or in its half mirror if they arrive in float16.
 * Then converts them to the other precision, if the matrix is stored in both.
 */
async function placeWire(
  { gpu, params: { rowFrom }, submitted }: GpuScopeOf<'place-rows'>,
  whole: DeviceMatrix,
  rows: WireRows,
): Promise<{ readonly rows: number }> {
  const inHalf = rows.form === 'f16';
  const target = inHalf ? whole.half : whole.values;
  if (target === undefined || (whole.halfOnly && !inHalf))
    throw new Error('task place-rows: the rows and the matrix are in different precisions');
  const rowBytes = whole.stride * numberBytes(rows);
  await gpu.takeIn(target, rows, rowFrom * rowBytes);
  if (!inHalf && whole.half !== undefined) await mirror(gpu, whole, submitted);
  if (inHalf && !whole.halfOnly) await widen(gpu, whole, submitted);
  return { rows: rows.bytes / rowBytes };
}

/** Fills a float32 matrix with the values of its half mirror. */
async function widen(
  gpu: Gpu,
  { half, values, rows, stride }: DeviceMatrix,
  submitted: () => void,
): Promise<void> {
  if (half === undefined) throw new Error('task place-rows: a matrix has no half mirror');
  const quads = (rows * stride) / 4;
  await gpu
    .pass('values of placed rows')
    .dispatch(await gpu.compile(fromHalfKernel, {}), { half, factors: values }, { quads }, { threads: quads })
    .submit({ submitted });
}

async function mirror(gpu: Gpu, whole: DeviceMatrix, submitted: () => void): Promise<void> {
  const pass = gpu.pass('half mirror of placed rows');
  await addHalf(gpu, pass, whole);
  await pass.submit({ submitted });
}

/**
 * Adds one matrix to another in place, sum += addend, for `fours` groups of four numbers from group number
 * `first` on.
 */
export const addMatrixKernel = kernelOf()({
  name: 'add-matrix',
  reads: { addend: 'array<vec4f>' },
  writes: { sum: 'array<vec4f>' },
  uniforms: { first: 'u32', fours: 'u32' },
  values: () => ({ THREADS: 256 }),
});

/** See `add-rows` of KernelTasks. */
export const addRows: GpuTaskHandler<'add-rows'> = async (scope) => {
  const { from, to } = scope.params;
  const sum = scope.matrix('sum');
  const addend = (await receivedRows(scope, sum)) ?? scope.matrix('addend');
  if (addend.rows !== sum.rows || addend.columns !== sum.columns)
    throw new Error(
      `task add-rows: ${addend.rows} x ${addend.columns} numbers cannot be added to ${sum.rows} x ` +
        `${sum.columns}`,
    );
  const quads = sum.stride / 4;
  const fours = (to - from) * quads;
  const pass = scope.gpu.pass('add-rows');
  pass.dispatch(
    await scope.gpu.compile(addMatrixKernel, {}),
    { addend: addend.values, sum: sum.values },
    { first: from * quads, fours },
    { threads: fours },
  );
  if (sum.half !== undefined) await addHalf(scope.gpu, pass, sum);
  await pass.submit({ submitted: scope.submitted });
  return { rows: to - from };
};

/**
 * The addend if its rows come from another GPU: uploaded as a matrix with the sum's stride. Undefined if the
 * addend is a matrix of this GPU.
 */
async function receivedRows(
  { gpu, wire }: GpuScopeOf<'add-rows'>,
  { columns, stride }: DeviceMatrix,
): Promise<DeviceMatrix | undefined> {
  const came = wire('addend');
  if (came === undefined) return undefined;
  const values = await gpu.scratch('addend', came.bytes);
  await gpu.takeIn(values, came);
  return { rows: came.bytes / numberBytes(came) / stride, columns, stride, values };
}

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
