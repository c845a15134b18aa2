import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues, THREADS } from './slot-columns.ts';

/**
 * For each entry of the list (row, first slot, n, number of slots): sums the entry's slots in order, and adds
 * the sum and n to the row's equations.
 */
export const addSlotsKernel = kernelOf<EquationsParams>()({
  name: 'add-slots',
  bindings: [...reads({ work: 'array<vec4u>', slots: 'array<f32>' }), ...writes({ equations: 'array<f32>' })],
  uniforms: {
    count: 'u32',

    /** The row number of the first row in `equations`, and the numbers that a row has there. */
    row_start: 'u32',
    stride: 'u32',
  },
  needs: () => [],
  values: equationValues,
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ],
});
