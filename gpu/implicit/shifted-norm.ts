import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';
import { NORM_ROWS } from '../loss/weighted-norm.ts';

const THREADS = 128;

/**
 * Σ shift_u ‖x_u‖² over rows [from_row, to_row) of a matrix whose rows have `stride` elements, one float32
 * sum for each NORM_ROWS rows.
 */
export const shiftedNormKernel: KernelDescriptor<Record<string, never>> = {
  name: 'shifted-norm',
  bindings: [...reads('shifts', 'factors'), ...writes('sums')],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
    { name: 'stride', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS, ROWS: NORM_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
};
