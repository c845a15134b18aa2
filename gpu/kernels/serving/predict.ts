import { type KernelDescriptor, reads, writes } from '../kernel.ts';

/** Also the pairs of a workgroup. */
export const PREDICT_THREADS = 64;

export type PredictParams = {
  /** Elements of a row of factors. */
  readonly stride: number;
};

/** x_uᵀθ_v for `pairs` pairs of positions. */
export const predictKernel: KernelDescriptor<PredictParams> = {
  name: 'predict',
  bindings: [...reads('rows', 'columns', 'row_factors', 'column_factors'), ...writes('predictions')],
  uniforms: [{ name: 'pairs', type: 'u32' }],
  needs: () => [],
  values: ({ stride }) => ({ THREADS: PREDICT_THREADS, QUADS: stride / 4, parts: Array.from({ length: stride / 16 }, (_, part) => 4 * part) }),
  workgroup: () => ({ threads: PREDICT_THREADS, bytes: 4 * 4 * (PREDICT_THREADS + 1) }),
};
