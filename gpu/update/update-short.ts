import { paddedRank } from '../device/slots.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';

export type UpdateShortParams = {
  readonly rank: number;
  /** Most ratings of a row: 32 or 64. */
  readonly longest: number;
  readonly biases: boolean;
  /**
   * True: this kernel subtracts the mean μ and the fixed side's biases γ (`fixed_bias`, one for each row of
   * θ) from the ratings. False: an earlier pass has done it; `fixed_bias` is bound but not read.
   */
  readonly centre: boolean;
};

/**
 * Chunks of a row of θ that are copied to workgroup memory at a time. A chunk is 16 bytes: eight features in
 * float16.
 */
const CHUNKS_A_ROUND = 4;

/**
 * Solves rows with at most `longest` ratings, by the dual system (Θ Θᵀ + λ n I) y = r, x = Θᵀ y, which has n
 * unknowns for n ratings. The solution is exact up to rounding, even if an approximate CG is requested. The
 * caller must check that the systems are well conditioned (`isDualRegular` in prepared-rows.ts). A workgroup
 * is one subgroup and takes rows from the list one after the other, so any number of workgroups may be
 * dispatched.
 */
export const updateShortKernel = kernelOf<UpdateShortParams>()({
  name: 'update-short',
  reads: {
    work: 'array<vec4<u32>>',
    indices: 'array<u32>',
    values: 'array<f32>',
    fixed: 'array<vec4<u32>>',
    fixed_bias: 'array<f32>',
    shifts: 'array<f32>',
  },
  writes: {
    factors: 'array<vec4f>',
    half: 'array<vec4<u32>>',
    bias: 'array<f32>',
    status: 'array<atomic<u32>>',
  },
  uniforms: { count: 'u32', zero_row: 'u32', mean: 'f32' },
  needs: () => ['f16', 'subgroups', 'tensor'],
  values: ({ rank, longest, biases, centre }) => {
    const chunks = paddedRank(rank) / 8;
    const tiles = longest / 16;
    return {
      CHUNKS: chunks,
      LONGEST: longest,
      ROUNDS: Math.ceil(chunks / CHUNKS_A_ROUND),
      BIASES: biases,
      ...shiftValues(biases),
      CENTRE: centre,
      own_rows: range(Math.ceil(longest / 32)),
      passes: range((longest * CHUNKS_A_ROUND) / 32),
      tiles: range(tiles),
      vectors: range(longest / 4),
      parts: range(tiles),
      chunk_groups: range(Math.ceil(chunks / 16)),
    };
  },
  workgroup: ({ longest }) => ({ threads: 32, bytes: longest * (5 * 16 + 4) }),
  samples: [
    ...[true, false].map((centre) => ({ rank: 100, longest: 64, biases: true, centre })),
    { rank: 10, longest: 32, biases: false, centre: false },
  ],
});
