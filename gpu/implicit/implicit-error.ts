import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 64;
const STEPS = 64;

/** Ratings that one workgroup sums. */
export const IMPLICIT_ERROR_RATINGS = (THREADS / 4) * STEPS;

export type ImplicitErrorParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
};

/**
 * Σ w (p - s)² + base p (1 - 2 s) over the ratings [first, last) of the rows [from_row, to_row), one float32
 * sum for each IMPLICIT_ERROR_RATINGS ratings. There is at least one rating.
 *
 */
export const implicitErrorKernel: KernelDescriptor<ImplicitErrorParams> = {
  name: 'implicit-error',
  bindings: [
    ...reads('row_pointers', 'indices', 'values', 'row_factors', 'column_factors'),
    ...writes('sums'),
  ],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'last', type: 'u32' },
    { name: 'alpha', type: 'f32' },
    { name: 'base', type: 'f32' },
  ],
  needs: () => [],
  values: ({ stride }) => ({
    THREADS,
    STEPS,
    QUADS: stride / 4,
    parts: Array.from({ length: stride / 16 }, (_, part) => 4 * part),
  }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * 2 * THREADS }),
};
