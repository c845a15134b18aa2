import type { RowRegularization } from '../../operators/tasks/task-types.ts';
import type { DeviceBlock } from '../device/resources.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';

/**
 * A matrix on the GPU that contains, in column number `column`, the number n of ratings of each row. `row`:
 * number of the row that is stored first.
 */
export interface CountColumn {
  readonly matrix: GPUBuffer;
  readonly stride: number;
  readonly column: number;
  readonly row: number;
}

type RowCounts = { readonly pointers: GPUBuffer } | CountColumn;

/** The parameters of most kernels that solve rows from slots. */
export type SolvedForm = {
  readonly rank: number;
  /** True: the row's bias is solved as well. */
  readonly biases: boolean;
  /** True: the float16 copy of the factors is written too. */
  readonly half: boolean;
};

/** The outputs of these kernels; see solve-cholesky. */
export const solvedRows = {
  factors: 'array<vec4f>',
  half: 'array<vec2u>',
  bias: 'array<f32>',
  status: 'array<atomic<u32>>',
} as const;

/**
 * Template values of the kernels that read shifts, the numbers that are added to the diagonals of A
 * (parts/rows.wgsl): numbers for each row.
 */
export function shiftValues(biases: boolean) {
  return { SHIFTS: biases ? 2 : 1 };
}

export function shiftBytes(rows: number, biases: boolean): number {
  return Math.max(16, 4 * rows * shiftValues(biases).SHIFTS);
}

/**
 * Computes the shifts of rows, the numbers that are added to the diagonals of their A, from their numbers n
 * of ratings. Writes `width` numbers for each of the `count` rows from row `first` on: the shift of A and,
 * with biases, the shift of the bias's own diagonal element (to which n is added elsewhere).
 *
 * n is read from `counts`: if `pointers` is 1, row pointers from index `at` on; else float32 numbers at index
 * `at` and every `step` elements after it.
 */
export const rowShiftsKernel = kernelOf()({
  name: 'row-shifts',
  reads: { counts: 'array<u32>' },
  writes: { shifts: 'array<f32>' },
  uniforms: {
    count: 'u32',
    first: 'u32',
    width: 'u32',
    pointers: 'u32',
    at: 'u32',
    step: 'u32',
    lambda: 'f32',
    exponent: 'f32',
    offset: 'f32',
    bias_lambda: 'f32',
    damping: 'f32',
  },
  values: () => ({ THREADS: 256 }),
});

/** The rows [from, to) and their regularization. */
type ShiftedRows = RowRegularization & { readonly from: number; readonly to: number };

/**
 * Returns the shifts of the rows [from, to) of a block, indexed by row number. They are computed once and
 * cached with the block: computing them again in each iteration would take a twentieth of a short iteration's
 * time.
 */
export async function blockShifts(
  gpu: Gpu,
  { rowPointers, prepared }: Pick<DeviceBlock, 'rowPointers' | 'prepared'>,
  { from, to, lambda, exponent, offset, damping, biasLambda }: ShiftedRows,
  biases: boolean,
): Promise<GPUBuffer> {
  const rows = { from, to, lambda, exponent, offset, damping, biasLambda };
  const key = `row shifts ${biases} ${JSON.stringify(rows)}`;
  const known = prepared.get(key);
  if (known !== undefined) return known as GPUBuffer;
  const shifts = await gpu.buffer(shiftBytes(to, biases), 'row shifts');
  try {
    const pass = gpu.pass('row shifts');
    await addShifts(gpu, pass, shifts, { pointers: rowPointers }, rows, biases);
    await pass.submit();
  } catch (error) {
    shifts.destroy();
    throw error;
  }
  prepared.set(key, shifts);
  return shifts;
}

/**
 * Adds to a pass the kernel that computes the shifts of the rows [from, to) from a matrix column. Returns
 * their buffer, a scratch buffer indexed by row number.
 */
export async function addMatrixShifts(
  gpu: Gpu,
  pass: Pass,
  counts: CountColumn,
  rows: ShiftedRows,
  biases: boolean,
): Promise<GPUBuffer> {
  const shifts = await gpu.scratch('row shifts', shiftBytes(rows.to, biases));
  await addShifts(gpu, pass, shifts, counts, rows, biases);
  return shifts;
}

async function addShifts(
  gpu: Gpu,
  pass: Pass,
  shifts: GPUBuffer,
  counts: RowCounts,
  { from, to, lambda, exponent = 1, offset = 0, damping = 0, biasLambda = lambda }: ShiftedRows,
  biases: boolean,
): Promise<void> {
  const [source, place] =
    'pointers' in counts
      ? [counts.pointers, { pointers: 1, at: from, step: 1 }]
      : [
          counts.matrix,
          { pointers: 0, at: (from - counts.row) * counts.stride + counts.column, step: counts.stride },
        ];
  pass.dispatch(
    await gpu.compile(rowShiftsKernel, {}),
    { counts: source, shifts },
    {
      count: to - from,
      first: from,
      width: shiftValues(biases).SHIFTS,
      ...place,
      lambda,
      exponent,
      offset,
      bias_lambda: biasLambda,
      damping,
    },
    { threads: to - from },
  );
}
