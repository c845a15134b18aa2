import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { laneValues, rowLanes } from './row-lanes.ts';
import { vectorQuads } from './vectors.ts';

export type EndVectorsParams = {
  readonly rank: number;
  readonly biases: boolean;
  /** True: rows are taken from a list; see vector-step. */
  readonly listed: boolean;
  /** The float16 mirror of the factors is written too. */
  readonly half: boolean;
};

/**
 * The end of matrix-free conjugate gradients, after the last step of vector-step: writes the solved rows to
 * `factors`, `half`, `bias` and `status`, as solve-cholesky does.
 */
export const endVectorsKernel = kernelOf<EndVectorsParams>()({
  name: 'end-vectors',
  bindings: [
    ...reads({ work: 'array<vec4u>', gradients: 'array<vec4f>', shifts: 'array<f32>' }),
    ...writes({
      factors: 'array<vec4f>',
      half: 'array<vec2u>',
      bias: 'array<f32>',
      status: 'array<atomic<u32>>',
    }),
  ],
  uniforms: { count: 'u32', first: 'u32' },
  values: (params) => ({
    ...params,
    ...laneValues(params.rank, rowLanes(params.rank)),
    ...shiftValues(params.biases),
    ROW_QUADS: vectorQuads(params.rank, params.biases).gradients,
  }),
  workgroup({ rank }) {
    const { lanes, rows } = rowLanes(rank);
    return { threads: lanes * rows, bytes: 8 * lanes * rows };
  },
  samples: [
    { rank: 264, biases: true, listed: true, half: true },
    { rank: 40, biases: false, listed: false, half: false },
  ],
});
