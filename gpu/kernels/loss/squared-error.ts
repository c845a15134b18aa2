import { type KernelDescriptor, reads, writes } from '../kernel.ts';

const THREADS = 64;
const STEPS = 16;

/** Ratings that one workgroup sums. */
export const ERROR_RATINGS = THREADS * STEPS;

export type SquaredErrorParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
  /** The errors include both biases; otherwise these buffers are not read. */
  readonly biased: boolean;
};

/**
 * Σ e² and Σ |e| over the ratings [first, last) of the rows [from_row, to_row), two float32 sums for each ERROR_RATINGS
 * ratings counted from `origin`. There is at least one rating.
 */
export const squaredErrorKernel: KernelDescriptor<SquaredErrorParams> = {
  name: 'squared-error',
  bindings: [...reads('row_pointers', 'indices', 'values', 'row_factors', 'column_factors', 'row_bias', 'column_bias'), ...writes('sums')],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'last', type: 'u32' },
    { name: 'origin', type: 'u32' },
    { name: 'base', type: 'f32' },
  ],
  needs: () => [],
  values: ({ stride, biased }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
    BIASED: biased,
    parts: Array.from({ length: stride / 16 }, (_, part) => 4 * part),
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * 2 * 4 * (THREADS + 1) }),
};
