import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 128;

/** Rows that one workgroup sums. */
export const NORM_ROWS = 64;

/**
 * Sums for the regularization term of the loss, over rows x_u of factors: Σ shift_u ‖x_u‖², where shift_u is
 * the row's number in `shifts`, and Σ w_k x_uk² over the rows whose shift is not 0. The weights w_k are
 * `first` and `second` for the first two features and `others` for all other features. Each workgroup writes
 * both sums as float32, for NORM_ROWS rows. A row has `stride` elements.
 */
export const weightedNormKernel = kernelOf()({
  name: 'weighted-norm',
  bindings: [
    ...reads({ shifts: 'array<f32>', factors: 'array<vec4f>' }),
    ...writes({ sums: 'array<vec2f>' }),
  ],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    stride: 'u32',
    first: 'f32',
    second: 'f32',
    others: 'f32',
  },
  values: () => ({ THREADS, ROWS: NORM_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 8 * THREADS }),
});
