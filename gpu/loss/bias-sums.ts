import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 128;

/** Rows that one workgroup sums. */
export const BIAS_ROWS = 1024;

/**
 * Σ n_u β_u², Σ β_u² and Σ T_u β_u over the rows with ratings among [from_row, to_row), four float32 (the
 * last 0) for each BIAS_ROWS rows.
 */
export const biasSumsKernel: KernelDescriptor<Record<string, never>> = {
  name: 'bias-sums',
  bindings: [...reads('offsets', 'bias', 'totals'), ...writes('sums')],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'to_row', type: 'u32' },
  ],
  needs: () => [],
  values: () => ({ THREADS, ROWS: BIAS_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 16 * THREADS }),
};
