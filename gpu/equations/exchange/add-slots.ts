import { kernelOf, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues } from './slot-columns.ts';

/**
 * Adds partial normal equations to the equations of rows. Parts of a row were summed into slots (layout:
 * device/slots.ts). For each entry (row, first slot, n, number of slots) of the list, this kernel sums the
 * slots in a fixed order and adds the sum, and n, to the row's equations (layout:
 * operators/tasks/equation-tasks.ts).
 */
export const addSlotsKernel = kernelOf<EquationsParams>()({
  name: 'add-slots',
  bindings: [...reads({ work: 'array<vec4u>', slots: 'array<f32>' }), ...writes({ equations: 'array<f32>' })],
  uniforms: {
    count: 'u32',

    /**
     * row_start: number of the row that is stored first in `equations`. stride: float32 elements of a row
     * there.
     */
    row_start: 'u32',
    stride: 'u32',
  },
  values: equationValues,
  samples: [
    { rank: 40, biases: false },
    { rank: 64, biases: true },
  ],
});
