import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { matrixElements, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { shiftValues } from './row-shifts.ts';

export type SolveCholeskyParams = {
  readonly rank: number;
  /** The row's bias is solved as well. */
  readonly biases: boolean;
  /** The float16 mirror of the factors is written too. */
  readonly half: boolean;
  /** Memory in which A is factorized: a copy in workgroup memory, or A's first slot. */
  readonly where: 'workgroup' | 'global';
};

/** The variant with workgroup memory if A fits there, else the variant that works in the slot. */
export function chooseSolveCholesky(
  rank: number,
  biases: boolean,
  half: boolean,
  { bytes = 16384 }: { readonly bytes?: number } = {},
): SolveCholeskyParams {
  const within = { rank, biases, half, where: 'workgroup' } as const;
  return workgroup(within).bytes <= bytes ? within : { ...within, where: 'global' };
}

/**
 * x of (A + λ n_u I) x = b by Cholesky, one workgroup a row.
 *
 * | buffer | content |
 * |---|---|
 * | `work` | rows (gpu/update/work.ts): row, first slot, n_u, slots |
 * | `slots` | a row's slots are adjacent, are summed in order, and are overwritten |
 * | `factors` | x, with a stride of whole tiles, padding 0; a row with n_u = 0 becomes 0 |
 * | `half` | the half mirror of `factors` |
 * | `bias` | with biases, the row's bias, which is eliminated first |
 * | `status` | the lowest row with an A not positive definite or an x not finite; first the largest u32 |
 *
 * A shift below the rounding error of A is raised to it, as on the CPU (cpu/assembly/solve/diagonal.ts).
 */
export const solveCholeskyKernel = kernelOf<SolveCholeskyParams>()({
  name: 'solve-cholesky',
  bindings: [
    ...reads({ work: 'array<vec4u>', shifts: 'array<f32>' }),
    ...writes({
      slots: 'array<vec4f>',
      factors: 'array<vec4f>',
      half: 'array<vec2u>',
      bias: 'array<f32>',
      status: 'array<atomic<u32>>',
    }),
  ],
  uniforms: {
    count: 'u32',
  },
  needs: () => [],
  values(params) {
    const { rank, where, biases } = params;
    const stride = paddedRank(rank);
    const { threads } = workgroup(params);
    const elements = range(16).map((at) => ({
      at,
      name: `${Math.floor(at / 4)}.${'xyzw'[at % 4]}`,
      buffer: 16 * (at % 2),
      later: range(15 - at).map((i) => at + 1 + i),
      quads: range(Math.floor(at / 4) + 1),
    }));
    return {
      ...params,
      ...shiftValues(biases),
      RANK: rank,
      STRIDE: stride,
      QUADS: stride / 4,
      TILES: tilesOf(rank),
      SLOT_QUADS: slotElements(rank, biases) / 4,
      // Offsets of the last row of tiles and of b, which is stored after the tiles.
      LAST_TILES: ((tilesOf(rank) * (tilesOf(rank) - 1)) / 2) * 64,
      BIAS_START: matrixElements(rank) / 4,
      THREADS: threads,
      barrier: where === 'workgroup' ? 'workgroupBarrier' : 'storageBarrier',
      // Rows of a panel, including b, that a thread keeps.
      owned: range(Math.ceil((stride + 1) / threads)),
      elements,
      upwards: elements.toReversed(),
    };
  },
  workgroup,
  samples: [chooseSolveCholesky(64, true, true), chooseSolveCholesky(512, false, false)],
});

function workgroup({ rank, where, biases }: SolveCholeskyParams) {
  const stride = paddedRank(rank);
  return {
    threads: Math.min(256, Math.ceil((stride + 1) / 32) * 32),
    bytes:
      128 +
      4 * stride +
      16 +
      (biases ? 4 * stride + 16 : 0) +
      (where === 'workgroup' ? 4 * slotElements(rank, false) : 0),
  };
}
