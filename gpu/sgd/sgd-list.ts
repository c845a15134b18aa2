import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * SGD on a list of ratings, cut into batches of `batch` ratings. It processes the batches with the numbers
 * order[first_batch] to order[last_batch - 1]. They are shared among teams of threads in all workgroups,
 * which update factors without locks (Hogwild!).
 */
export const sgdListKernel = kernelOf<SgdStepParams>()({
  name: 'sgd-list',
  bindings: [
    ...reads({ rows: 'array<u32>', columns: 'array<u32>', values: 'array<f32>', order: 'array<u32>' }),
    ...writes({
      row_factors: 'array<{{ stored }}>',
      column_factors: 'array<{{ stored }}>',
      row_sums: 'array<f32>',
      column_sums: 'array<f32>',
    }),
  ],
  uniforms: {
    ratings: 'u32',
    first_batch: 'u32',
    last_batch: 'u32',
    batch: 'u32',
    rate: 'f32',
    row_lambda: 'f32',
    column_lambda: 'f32',
  },
  needs: ({ lanes }) => teamNeeds(lanes),
  values: stepValues,
  workgroup: ({ threads }) => ({ threads, bytes: 0 }),
  samples: [
    { features: 34, precision: 'f16', threads: 128, lanes: 4, biases: true, adaptive: true },
    { features: 16, precision: 'f32', threads: 128, lanes: 1, biases: false, adaptive: false },
  ],
});
