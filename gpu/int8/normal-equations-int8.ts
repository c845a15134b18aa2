import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { BINS_AHEAD, int8Needs, int8Values, int8Workgroup } from './int8-plan.ts';

export type NormalEquationsInt8Params = {
  readonly rank: number;
  readonly biases: boolean;
};

/**
 * Computes A and b of rows or parts of rows on tensor cores in 8 bits and writes them to slots
 * (device/slots.ts), like normal-equations-tensor in float16. `fixed` (θ in 8 bits) and `scales` (one for
 * each feature) are outputs of the kernel to-int8. Ratings are multiplied by `scale` and rounded to 16 bits.
 * A part has at most INT8_PART ratings.
 */
export const normalEquationsInt8Kernel = kernelOf<NormalEquationsInt8Params>()({
  name: 'normal-equations-int8',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      scales: 'array<vec4f>',
      fixed_bias: 'array<f32>',
    }),
    ...writes({ slots: 'array<vec4f>' }),
  ],
  uniforms: {
    count: 'u32',
    zero_row: 'u32',
    scale: 'f32',
    unscale: 'f32',
    mean: 'f32',
  },
  needs: () => int8Needs,
  values: (params) => ({ ...int8Values(params), sets: range(BINS_AHEAD.ofSums(params.rank)) }),
  workgroup: int8Workgroup,
  samples: [
    { rank: 100, biases: true },
    { rank: 64, biases: true },
    { rank: 128, biases: false },
  ],
});
