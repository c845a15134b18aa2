import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 128;

/** Rows that one workgroup sums. */
export const NORM_ROWS = 64;

/**
 * Σ n_u^ν ‖x_u‖² and Σ w_k x_uk² over rows [from_row, to_row) of a matrix whose rows have `stride` elements,
 * a pair of float32 sums for each NORM_ROWS rows.
 */
export const weightedNormKernel: KernelDescriptor<Record<string, never>> = {
  name: 'weighted-norm',
  bindings: [...reads('offsets', 'factors'), ...writes('sums')],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'stride', type: 'u32' },
    { name: 'exponent', type: 'f32' },
    { name: 'first', type: 'f32' },
    { name: 'second', type: 'f32' },
    { name: 'others', type: 'f32' },
  ],
  needs: () => [],
  values: () => ({ THREADS, ROWS: NORM_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 8 * THREADS }),
};
