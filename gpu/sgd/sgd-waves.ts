import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * One wave of wavefront-update: a workgroup is a team, and steps one block; see `sgd-waves` of KernelTasks.
 */
export const sgdWavesKernel: KernelDescriptor<Omit<SgdStepParams, 'threads'>> = {
  name: 'sgd-waves',
  bindings: [
    ...reads('starts', 'ratings', 'order'),
    ...writes('row_factors', 'column_factors', 'row_sums', 'column_sums'),
  ],
  uniforms: [
    { name: 'wave', type: 'u32' },
    { name: 'workers', type: 'u32' },
    { name: 'column_bands', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'row_lambda', type: 'f32' },
    { name: 'column_lambda', type: 'f32' },
  ],
  needs: ({ lanes }) => teamNeeds(lanes),
  values: (params) => stepValues({ ...params, threads: params.lanes }),
  workgroup: ({ lanes }) => ({ threads: lanes, bytes: 0 }),
};
