import { addMatrixShifts, blockShifts } from '../../solve/row-shifts.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import { type KernelCheck, deviation } from '../support/check.ts';
import { regularizationFor, shiftsOf } from '../support/solved-rows.ts';

const COUNTS = Array.from({ length: 600 }, (_, row) => (row * row) % 1009);
const [FROM, TO, STRIDE] = [3, 599, 5];

/**
 * Checks of shifts (numbers that regularization adds to the diagonal), for a range of rows. The rows' numbers
 * of ratings come from row pointers, or from a column of a matrix.
 */
export const rowShiftsChecks: readonly KernelCheck[] = [false, true].flatMap((biases) =>
  (['pointers', 'matrix'] as const).map((form) => ({
    name: 'row-shifts',
    variant: `${form}${biases ? ', biases' : ''}`,
    run: (gpu) => check(gpu, form, biases),
  })),
);

async function check(gpu: Gpu, form: 'pointers' | 'matrix', biases: boolean) {
  const pointers = new Int32Array(COUNTS.length + 1);
  COUNTS.forEach((n, row) => (pointers[row + 1] = pointers[row] + n));
  const matrix = Float32Array.from({ length: COUNTS.length * STRIDE }, (_, at) =>
    at % STRIDE === 2 ? COUNTS[Math.floor(at / STRIDE)] : -1,
  );
  const buffer = await gpu.bufferOf(form === 'pointers' ? pointers : matrix, 'counts');
  const rows = { from: FROM, to: TO, ...regularizationFor(biases) };
  const pass = gpu.pass('check row-shifts');
  const shifts =
    form === 'pointers'
      ? await blockShifts(gpu, { rowPointers: buffer, prepared: new Map() }, rows, biases)
      : await addMatrixShifts(gpu, pass, { matrix: buffer, stride: STRIDE, column: 2, row: 0 }, rows, biases);
  const width = biases ? 2 : 1;
  const { bytes } = await pass.submit({ read: { buffer: shifts, bytes: 4 * width * TO } });
  buffer.destroy();
  if (form === 'pointers') shifts.destroy();
  const found = Float64Array.from(new Float32Array(bytes).subarray(width * FROM));
  const expected = shiftsOf(COUNTS, biases, rows).subarray(width * FROM, width * TO);
  return { error: deviation(found, Float64Array.from(expected)), limit: 1e-6 };
}
