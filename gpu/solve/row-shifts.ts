import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import type { Pass } from '../webgpu/pass.ts';
import type { RowRegularization } from '../../operators/tasks/task-types.ts';

export type RowShiftsParams = {
  /** A row has two numbers: the shift of its A, and the shift of its bias's element, which has n as well. */
  readonly biases: boolean;
};

/** Where the numbers n of ratings are: row pointers, or one number in each row of a matrix. */
export type RowCounts =
  | { readonly pointers: GPUBuffer }
  | { readonly matrix: GPUBuffer; readonly stride: number; readonly column: number; readonly row: number };

const THREADS = 256;

/** Values of a kernel that reads shifts (parts/row-shift.wgsl): numbers of a row. */
export function shiftValues(biases: boolean) {
  return { SHIFTS: biases ? 2 : 1 };
}

/** The shifts of `count` rows from `first` on; the number n of the first is at `at`, or a pointer to its end at `at` + 1. */
export const rowShiftsKernel = kernelOf<RowShiftsParams>()({
  name: 'row-shifts',
  bindings: [...reads({ counts: 'array<u32>' }), ...writes({ shifts: 'array<f32>' })],
  uniforms: {
    count: 'u32',
    first: 'u32',
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
  values: ({ biases }) => ({ THREADS, ...shiftValues(biases) }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{ biases: false }, { biases: true }],
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
  const shifts = await gpu.scratch('row shifts', Math.max(16, 4 * to * (biases ? 2 : 1)));
  const [source, place] =
    'pointers' in counts
      ? [counts.pointers, { pointers: 1, at: from, step: 1 }]
      : [
          counts.matrix,
          { pointers: 0, at: (from - counts.row) * counts.stride + counts.column, step: counts.stride },
        ];
  pass.dispatch(
    await gpu.compile(rowShiftsKernel, { biases }),
    { counts: source, shifts },
    { count: to - from, first: from, ...place, lambda, exponent, offset, damping, bias_lambda: biasLambda },
    Math.ceil((to - from) / THREADS),
  );
  return shifts;
}
