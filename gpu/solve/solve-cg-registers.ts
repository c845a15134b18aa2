import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { shiftValues } from './row-shifts.ts';
import { subgroupsFor } from '../equations/tensor-plan.ts';
import { RESIDUAL_TOLERANCE } from './solve-cg.ts';

/**
 * Largest rank of this solver and of the fused kernels: each thread has one row of A, and a workgroup has at
 * most 256 threads.
 */
export const REGISTER_RANKS = 256;

export type SolveRegistersParams = {
  readonly rank: number;
  readonly halfA: boolean;
  readonly biases: boolean;
  /** True: the float16 copy of the factors is written too. */
  readonly half: boolean;
};

/**
 * Template values of the shader parts that run CG with A in registers (parts/register-helpers and others).
 */
export function registerSolverValues({ halfA }: { readonly halfA: boolean }) {
  return { tolerance: RESIDUAL_TOLERANCE, HALF_A: halfA, zero_a: halfA ? 'vec2<u32>()' : 'vec4f()' };
}

/**
 * Bytes of workgroup memory that these shader parts need: the vector that A is multiplied by, and the
 * subgroups' partial sums, both double-buffered.
 */
export function registerSolverBytes(rank: number, subgroups = subgroupsFor(rank)): number {
  return 2 * tilesOf(rank) * 4 * 16 + 2 * subgroups * 16;
}

/**
 * Solves rows by conjugate gradients, with A in the registers of a workgroup. A workgroup has one row. A and
 * b are read from slots (device/slots.ts), scratch memory in which another kernel has summed them. It serves
 * ranks up to 256 if A is float16 (`halfA`), and up to 144 if A is float32.
 */
export const solveCgRegistersKernel = kernelOf<SolveRegistersParams>()({
  name: 'solve-cg-registers',
  bindings: [
    ...reads({ work: 'array<vec4<u32>>' }),
    ...writes({ slots: 'array<vec4f>' }),
    ...reads({ previous: 'array<f32>', shifts: 'array<f32>' }),
    ...writes({
      factors: 'array<f32>',
      half: 'array<u32>',
      bias: 'array<f32>',
      status: 'array<atomic<u32>>',
    }),
  ],
  uniforms: { count: 'u32', steps: 'u32' },
  needs: () => ['subgroups'],
  values: (params) => {
    const { rank, biases, half } = params;
    const subgroups = subgroupsFor(rank);
    return {
      RANK: rank,
      PADDED: paddedRank(rank),
      TILES: tilesOf(rank),
      LOWER_TILES: (tilesOf(rank) * (tilesOf(rank) + 1)) / 2,
      SLOT_VECTORS: slotElements(rank, biases) / 4,
      THREADS: subgroups * 32,
      SUBGROUPS: subgroups,
      BIASES: biases,
      INT8: false,
      between: '',
      ...shiftValues(biases),
      WRITE_HALF: half,
      tile_numbers: range(tilesOf(rank)),
      other_subgroups: range(subgroups).slice(1),
      ...registerSolverValues(params),
    };
  },
  workgroup: (params) => ({
    threads: subgroupsFor(params.rank) * 32,
    bytes: registerSolverBytes(params.rank),
  }),
  samples: [
    { rank: 100, halfA: true, biases: true, half: true },
    { rank: 64, halfA: false, biases: false, half: false },
  ],
});
