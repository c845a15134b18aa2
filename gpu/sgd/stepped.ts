import { fromHalfKernel, fromHalfWorkgroups } from '../descriptors/from-half.ts';
import type { GpuTaskScope } from '../handler.ts';
import type { Pass } from '../pass.ts';
import type { DeviceMatrix } from '../resources.ts';
import { addHalf } from '../update/mirror.ts';

/** Both sides' factors as a kernel of SGD steps them. */
export interface Stepped {
  readonly rows: DeviceMatrix;
  readonly columns: DeviceMatrix;
  readonly bindings: Readonly<Record<string, GPUBuffer>>;
}

/**
 * The outputs of a task of SGD: with float16 their mirrors are stepped, which `begin` makes from the matrices and `end` turns
 * back into them; both take a fraction of a millisecond where an epoch takes many.
 */
export async function steppedFactors(scope: GpuTaskScope, precision: 'f32' | 'f16', adaptive: boolean): Promise<Stepped> {
  const half = precision === 'f16';
  const matrix = (name: string) => (half ? scope.matrixWithHalf(name) : scope.matrix(name));
  const [rows, columns] = [await matrix('rows'), await matrix('columns')];
  const stored = (one: DeviceMatrix) => (half ? (one.half as GPUBuffer) : one.values);
  const sums = async (name: string) => (adaptive ? scope.matrix(name).values : scope.gpu.scratch(`no ${name}`, 16));
  const bindings = { row_factors: stored(rows), column_factors: stored(columns), row_sums: await sums('rowSums'), column_sums: await sums('columnSums') };
  return { rows, columns, bindings };
}

export async function begin(scope: GpuTaskScope, pass: Pass, { rows, columns }: Stepped, precision: 'f32' | 'f16'): Promise<void> {
  if (precision === 'f16') for (const matrix of [rows, columns]) await addHalf(scope.gpu, pass, matrix);
}

export async function end(scope: GpuTaskScope, pass: Pass, { rows, columns }: Stepped, precision: 'f32' | 'f16'): Promise<void> {
  if (precision === 'f32') return;
  const kernel = await scope.gpu.compile(fromHalfKernel, {});
  for (const { half, values, rows: count, stride } of [rows, columns]) {
    if (half === undefined) throw new Error('a stepped matrix has lost its half mirror');
    const quads = (count * stride) / 4;
    pass.dispatch(kernel, { half, factors: values }, { quads }, fromHalfWorkgroups(quads));
  }
}
