import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * SGD on the batches [first_batch, last_batch) of `order` in a list of ratings, shared among the teams of all
 * workgroups (Hogwild!).
 */
export const sgdListKernel: KernelDescriptor<SgdStepParams> = {
  name: 'sgd-list',
  bindings: [
    ...reads('rows', 'columns', 'values', 'order'),
    ...writes('row_factors', 'column_factors', 'row_sums', 'column_sums'),
  ],
  uniforms: [
    { name: 'ratings', type: 'u32' },
    { name: 'first_batch', type: 'u32' },
    { name: 'last_batch', type: 'u32' },
    { name: 'batch', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'row_lambda', type: 'f32' },
    { name: 'column_lambda', type: 'f32' },
  ],
  needs: ({ lanes }) => teamNeeds(lanes),
  values: stepValues,
  workgroup: ({ threads }) => ({ threads, bytes: 0 }),
};
