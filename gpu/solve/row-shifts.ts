import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { RowRegularization } from '../../operators/tasks/task-types.ts';

/** Where the numbers n of ratings are: row pointers, or one number in each row of a matrix. */
export type RowCounts =
  | { readonly pointers: GPUBuffer }
  | { readonly matrix: GPUBuffer; readonly stride: number; readonly column: number; readonly row: number };

const THREADS = 256;

/** Values of a kernel that reads shifts (parts/row-shift.wgsl): numbers of a row. */
export function shiftValues(biases: boolean) {
  return { SHIFTS: biases ? 2 : 1 };
}

/** Bytes of the shifts of a side. */
export function shiftBytes(rows: number, biases: boolean): number {
  return Math.max(16, 4 * rows * shiftValues(biases).SHIFTS);
}

/**
 * The shifts of `count` rows from `first` on, `width` numbers a row: the shift of A, and with biases the shift
 * of the bias's element, which has n as well. The n of the first row is at `at`, of the next `step` further; or
 * row pointers begin there.
 */
export const rowShiftsKernel = kernelOf<Record<string, never>>()({
  name: 'row-shifts',
  bindings: [...reads({ counts: 'array<u32>' }), ...writes({ shifts: 'array<f32>' })],
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
  needs: () => [],
  values: () => ({ THREADS }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{}],
});

/** Adds the kernel that makes the shifts of the rows [from, to), where kernels then find them by row. */
export async function addRowShifts(
  gpu: Gpu,
  pass: Pass,
  counts: RowCounts,
  { from, to, ...regularization }: RowRegularization & { readonly from: number; readonly to: number },
  biases: boolean,
): Promise<GPUBuffer> {
  const { lambda, exponent = 1, offset = 0, damping = 0, biasLambda = lambda } = regularization;
  const width = shiftValues(biases).SHIFTS;
  const shifts = await gpu.scratch('row shifts', shiftBytes(to, biases));
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
      width,
      ...place,
      lambda,
      exponent,
      offset,
      bias_lambda: biasLambda,
      damping,
    },
    Math.ceil((to - from) / THREADS),
  );
  return shifts;
}
