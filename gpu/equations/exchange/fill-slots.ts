import { type KernelDescriptor, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues, THREADS } from './slot-columns.ts';

/**
 * Writes each row of equations to a slot of its own, and the list of the rows (row, slot, n, 1) that solvers
 * take.
 */
export const fillSlotsKernel: KernelDescriptor<EquationsParams> = {
  name: 'fill-slots',
  bindings: [...reads('equations'), ...writes('slots', 'work')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'row', type: 'u32' },
    { name: 'stride', type: 'u32' },
  ],
  needs: () => [],
  values: equationValues,
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
