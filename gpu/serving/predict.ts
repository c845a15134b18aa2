import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/** Threads of a workgroup. It computes the same number of pairs. */
export const PREDICT_THREADS = 64;

export type PredictParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
};

/**
 * Predictions x_uᵀθ_v for pairs (u, v): `rows` has the pairs' rows of row_factors, `columns` their rows of
 * column_factors.
 */
export const predictKernel = kernelOf<PredictParams>()({
  name: 'predict',
  bindings: [
    ...reads({
      rows: 'array<u32>',
      columns: 'array<u32>',
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
    }),
    ...writes({ predictions: 'array<f32>' }),
  ],
  uniforms: { pairs: 'u32' },
  values: ({ stride }) => ({
    THREADS: PREDICT_THREADS,
    QUADS: stride / 4,
    parts: Array.from({ length: stride / 16 }, (_, part) => 4 * part),
  }),
  workgroup: () => ({ threads: PREDICT_THREADS, bytes: 4 * 4 * (PREDICT_THREADS + 1) }),
  samples: [{ stride: 112 }],
});
