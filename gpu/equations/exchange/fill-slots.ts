import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues, THREADS } from './slot-columns.ts';

/**
 * Writes each row of equations to a slot of its own, and the list of rows (row, slot, n, 1) that solvers
 * read.
 */
export const fillSlotsKernel = kernelOf<EquationsParams>()({
  name: 'fill-slots',
  bindings: [...reads({ equations: 'array<f32>' }), ...writes({ slots: 'array<f32>', work: 'array<vec4u>' })],
  uniforms: {
    count: 'u32',

    /** The index in `equations` of the first row, and that row's number in the solvers' outputs. */
    first: 'u32',
    row: 'u32',

    /** Numbers of a row of `equations`. */
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
