import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { NORM_ROWS } from '../loss/weighted-norm.ts';

const THREADS = 128;

/**
 * Σ shift_u ‖x_u‖² over rows [from_row, to_row) of a matrix whose rows have `stride` elements, one float32
 * sum for each NORM_ROWS rows.
 */
export const shiftedNormKernel = kernelOf<Record<string, never>>()({
  name: 'shifted-norm',
  bindings: [...reads({ shifts: 'array<f32>', factors: 'array<vec4f>' }), ...writes({ sums: 'array<f32>' })],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    stride: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS, ROWS: NORM_ROWS }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
  samples: [{}],
});
