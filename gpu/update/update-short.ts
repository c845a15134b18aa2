import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { paddedRank } from '../device/slots.ts';

export type UpdateShortParams = {
  readonly rank: number;
  /** Ratings of the longest row: 32 or 64. */
  readonly longest: number;
  readonly biases: boolean;
  /**
   * True: this kernel subtracts μ and γ (`fixed_bias`, a number for each row of θ) from the ratings. False:
   * an earlier pass has done it; `fixed_bias` is bound but not read.
   */
  readonly centre: boolean;
};

/** Chunks of a row that are staged at a time. A chunk has 16 bytes: eight float16 features. */
const CHUNKS_A_ROUND = 4;

/**
 * Solves rows with up to `longest` ratings by the dual system (Θ Θᵀ + λ n I) y = r, x = Θᵀ y. The solution
 * is exact up to rounding, even if CG is requested. Requires `isDualRegular` (prepared-rows.ts). Workgroups
 * of one subgroup take rows from the list one after the other, so any number of them may be dispatched.
 */
export const updateShortKernel = kernelOf<UpdateShortParams>()({
  name: 'update-short',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      fixed_bias: 'array<f32>',
      shifts: 'array<f32>',
    }),
    ...writes({
      factors: 'array<vec4f>',
      half: 'array<vec4<u32>>',
      bias: 'array<f32>',
      status: 'array<atomic<u32>>',
    }),
  ],
  uniforms: {
    count: 'u32',
    zero_row: 'u32',
    mean: 'f32',
  },
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
