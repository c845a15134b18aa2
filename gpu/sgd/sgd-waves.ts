import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * One wave of wavefront-update: a workgroup is a team and steps one block; see `sgd-waves` of KernelTasks.
 */
export const sgdWavesKernel = kernelOf<Omit<SgdStepParams, 'threads'>>()({
  name: 'sgd-waves',
  bindings: [
    ...reads({
      /** Starts of the blocks: row band i and column band j have block i * column_bands + j. */
      starts: 'array<u32>',
      ratings: 'array<u32>',
      /** The band of columns of each worker in each wave; 0xffffffff for none. */
      order: 'array<u32>',
    }),
    ...writes({
      row_factors: 'array<{{ stored }}>',
      column_factors: 'array<{{ stored }}>',
      row_sums: 'array<f32>',
      column_sums: 'array<f32>',
    }),
  ],
  uniforms: {
    wave: 'u32',
    workers: 'u32',
    column_bands: 'u32',
    rate: 'f32',
    row_lambda: 'f32',
    column_lambda: 'f32',
  },
  needs: ({ lanes }) => teamNeeds(lanes),
  values: (params) => stepValues({ ...params, threads: params.lanes }),
  workgroup: ({ lanes }) => ({ threads: lanes, bytes: 0 }),
  samples: [
    { features: 34, precision: 'f16', lanes: 4, biases: true, adaptive: true },
    { features: 128, precision: 'f32', lanes: 32, biases: false, adaptive: false },
    { features: 16, precision: 'f32', lanes: 1, biases: false, adaptive: false },
  ],
});
