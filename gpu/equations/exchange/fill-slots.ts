import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues } from './slot-columns.ts';

/**
 * Copies normal equations to slots, the layout that the solvers read: each row of `equations` (layout:
 * operators/tasks/equation-tasks.ts) to one slot (layout: device/slots.ts). Also writes the list of rows for
 * the solvers, with the entries (row, slot, n, 1), or (row, slot, 0, 0) without ratings.
 */
export const fillSlotsKernel = kernelOf<EquationsParams>()({
  name: 'fill-slots',
  bindings: [...reads({ equations: 'array<f32>' }), ...writes({ slots: 'array<f32>', work: 'array<vec4u>' })],
  uniforms: {
    count: 'u32',

    /**
     * first: index in `equations` of the first row to copy. row: that row's number in the solvers' outputs.
     */
    first: 'u32',
    row: 'u32',

    /** Float32 elements of a row of `equations`. */
    stride: 'u32',
  },
  values: equationValues,
  samples: [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ],
});
