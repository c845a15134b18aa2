import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 128;

/** Rows that one workgroup sums. */
export const BIAS_ROWS = 1024;

/**
 * Sums three terms of the loss that contain biases, over the rows with ratings in [from_row, to_row): n_u
 * β_u², β_u² and T_u β_u, where β_u is the row's bias (`bias`), n_u its number of ratings and T_u its number
 * in `totals`. Writes four float32 for each BIAS_ROWS rows: the three sums, and 0.
 */
export const biasSumsKernel = kernelOf()({
  name: 'bias-sums',
  bindings: [
    ...reads({ offsets: 'array<i32>', bias: 'array<f32>', totals: 'array<f32>' }),
    ...writes({ sums: 'array<vec4f>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
  },
  values: () => ({ THREADS, ROWS: BIAS_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 16 * THREADS }),
});
