import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

/**
 * One wave of SGD by wavefront-update (cuMF_SGD, section 3.2.3). Rows and columns are cut into bands. Each
 * workgroup is one team of threads and has a band of rows; in a wave it processes the block of this band and
 * one band of columns. No two workgroups have the same band of columns in a wave, so no locks are needed. See
 * `sgd-waves` of KernelTasks.
 */
export const sgdWavesKernel = kernelOf<Omit<SgdStepParams, 'threads'>>()({
  name: 'sgd-waves',
  bindings: [
    ...reads({
      /** Index of each block's first rating; row band i and column band j have block i * column_bands + j. */
      starts: 'array<u32>',
      ratings: 'array<u32>',
      /** For each wave, the band of columns of each workgroup; 0xffffffff if it has none in this wave. */
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
