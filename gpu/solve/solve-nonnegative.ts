import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { matrixElements, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { shiftValues } from './row-shifts.ts';

export type SolveNonnegativeParams = {
  readonly rank: number;
  /** The row's bias is solved as well, and may be negative. */
  readonly biases: boolean;
  /** The float16 mirror of the factors is written too. */
  readonly half: boolean;
};

/** Groups of four elements of A that a thread keeps in registers, at most. */
const REGISTER_GROUPS = 16;

function shape({ rank }: SolveNonnegativeParams) {
  const tiles = tilesOf(rank);
  const stride = paddedRank(rank);
  const threads = tiles <= 2 ? 64 : tiles <= 4 ? 128 : 256;
  return {
    stride,
    threads,
    groups: Math.ceil(matrixElements(rank) / 4 / threads),
    lanes: Math.max(1, Math.floor(threads / stride)),
    words: Math.ceil(rank / 32),
  };
}

/**
 * Finds the x >= 0 that minimizes ½ xᵀ(A + λ n_u I) x - bᵀx, one workgroup a row. The first guess is that
 * the features that are positive in `previous` are positive in x. Lists, slots, outputs and `status`: see
 * solve-cholesky; the first slot of a row is overwritten. If the minimum is not found, the row is reported
 * as bad. A component of the gradient counts as 0 up to 1e-5 ‖b‖.
 */
export const solveNonnegativeKernel = kernelOf<SolveNonnegativeParams>()({
  name: 'solve-nonnegative',
  bindings: [
    ...reads({ work: 'array<vec4u>' }),
    ...writes({ slots: 'array<vec4f>' }),
    ...reads({ previous: 'array<f32>', shifts: 'array<f32>' }),
    ...writes({ factors: 'array<vec4f>', half: 'array<vec2u>', bias: 'array<f32>', status: 'atomic<u32>' }),
  ],
  uniforms: {
    count: 'u32',
  },
  needs: () => [],
  values(params) {
    const { rank, biases } = params;
    const { stride, threads, groups, lanes, words } = shape(params);
    return {
      ...params,
      ...shiftValues(biases),
      RANK: rank,
      STRIDE: stride,
      QUADS: stride / 4,
      SLOT_QUADS: slotElements(rank, biases) / 4,
      BIAS_START: matrixElements(rank) / 4,
      THREADS: threads,
      LANES: lanes,
      WORDS: words,
      GROUPS: groups,
      unrolled: groups <= REGISTER_GROUPS,
      groups: range(groups),
      // Features for which a thread keeps y.
      rights: range(Math.ceil(stride / threads)),
    };
  },
  workgroup(params) {
    const { stride, threads, lanes, words } = shape(params);
    return {
      threads,
      bytes: 16 + 4 * (stride * (4 + lanes) + 2 + 3 * words + 3) + (params.biases ? 4 * stride + 16 : 0),
    };
  },
  samples: [
    { rank: 64, biases: true, half: true },
    { rank: 512, biases: false, half: false },
  ],
});
