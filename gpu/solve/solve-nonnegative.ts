import { matrixElements, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import { shiftValues, type SolvedForm, solvedRows } from './row-shifts.ts';

/**
 * Most groups of four elements of A that a thread keeps as separate variables, in registers; above this
 * number it uses an array.
 */
const REGISTER_GROUPS = 16;

function shape({ rank }: SolvedForm) {
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
 * Finds the x >= 0 that minimizes ½ xᵀ(A + λ n_u I) x - bᵀx of rows. A workgroup has one row. A and b are
 * read from slots, scratch memory in which another kernel has summed them; the first slot of a row is
 * overwritten. A row's bias may be negative. The search starts with the guess that the features that are positive in `previous` are
 * positive in x. A component of the gradient counts as 0 up to 1e-5 ‖b‖. If no minimum is found, the row is
 * reported in `status`. Work list, outputs and `status`: see solve-cholesky.
 */
export const solveNonnegativeKernel = kernelOf<SolvedForm>()({
  name: 'solve-nonnegative',
  reads: { work: 'array<vec4u>', previous: 'array<f32>', shifts: 'array<f32>' },
  writes: { slots: 'array<vec4f>', ...solvedRows, status: 'atomic<u32>' },
  uniforms: { count: 'u32' },
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
      // Numbers of the features for which one thread keeps y.
      rights: range(Math.ceil(stride / threads)),
    };
  },
  bytes(params) {
    const { stride, lanes, words } = shape(params);
    return 16 + 4 * (stride * (4 + lanes) + 2 + 3 * words + 3) + (params.biases ? 4 * stride + 16 : 0);
  },
  samples: [
    { rank: 64, biases: true, half: true },
    { rank: 512, biases: false, half: false },
  ],
});
