import type { KernelDescriptor } from '../kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/** One wave of wavefront-update: a workgroup is a team, and steps one block; see SgdWavesTask. */
export const sgdWavesKernel: KernelDescriptor<Omit<SgdStepParams, 'threads'>> = {
  name: 'sgd-waves',
  bindings: [
    { name: 'starts', access: 'read' },
    { name: 'ratings', access: 'read' },
    { name: 'order', access: 'read' },
    { name: 'row_factors', access: 'read_write' },
    { name: 'column_factors', access: 'read_write' },
    { name: 'row_sums', access: 'read_write' },
    { name: 'column_sums', access: 'read_write' },
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
