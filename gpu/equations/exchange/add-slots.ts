import { type KernelDescriptor, reads, writes } from '../../webgpu/kernel.ts';
import { type EquationsParams, equationValues, THREADS } from './slot-columns.ts';

/**
 * Adds up the slots of each row of the list (row, first slot, n, slots) in their order, and adds that and n
 * to the row's equations.
 */
export const addSlotsKernel: KernelDescriptor<EquationsParams> = {
  name: 'add-slots',
  bindings: [...reads('work', 'slots'), ...writes('equations')],
  uniforms: [
    { name: 'count', type: 'u32' },
    { name: 'row_start', type: 'u32' },
    { name: 'stride', type: 'u32' },
  ],
  needs: () => [],
  values: equationValues,
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
};
