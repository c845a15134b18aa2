import { matrixElements, paddedRank, slotElements, tilesOf } from '../device/slots.ts';
import { subgroupsFor } from '../equations/tensor-plan.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';
import { shiftValues, type SolvedForm, solvedRows } from './row-shifts.ts';

export type SolveCgParams = SolvedForm & {
  /** `f16`: the solver rounds A / n_u to float16 (cuMF_ALS, Solution 4). λ and all vectors are float32. */
  readonly a: 'f32' | 'f16';
};

/** Up to this padded rank, A is kept in registers, each row of A in one or two threads. */
const REGISTER_STRIDE = 128;
/** Most elements of A that one thread keeps in registers. */
const REGISTER_ELEMENTS = 64;

/**
 * CG ends when the residual's square ‖r‖² is below RESIDUAL_TOLERANCE times its first value, or below
 * BIAS_TOLERANCE times ‖b‖² (b: right-hand side). Below either limit, float32 cannot improve x further
 * (cpu/assembly/solve/conjugate-gradient.ts).
 */
export const RESIDUAL_TOLERANCE = 1e-12;
export const BIAS_TOLERANCE = 1e-10;

function shape({ rank }: SolveCgParams) {
  const stride = paddedRank(rank);
  const registers = stride <= REGISTER_STRIDE;
  const segments = registers && stride > REGISTER_ELEMENTS ? 2 : 1;
  const lanes = registers ? stride * segments : Math.min(256, stride);
  return { stride, registers, segments, lanes, rows: registers ? Math.max(1, Math.floor(64 / lanes)) : 1 };
}

export function solveCgWorkgroups(params: SolveCgParams, count: number): number {
  return Math.ceil(count / shape(params).rows);
}

/**
 * Solves (A + λ n_u I) x = b of rows by `steps` steps (f_s) of conjugate gradients that start from `previous`
 * (cuMF_ALS, Algorithm 1). It runs on any GPU, and ends early under the same conditions as
 * cpu/reference/solvers.ts. A and b are read from slots, scratch memory in which another kernel
 * has summed them. Up to 128 features A is then kept in registers; above that, each step reads it from the
 * row's first slot. Work list, slots, outputs and `status`: see solve-cholesky. Without biases, any buffer
 * may be bound as `bias`.
 */
export const solveCgKernel = kernelOf<SolveCgParams>()({
  name: 'solve-cg',
  reads: { work: 'array<vec4u>', previous: 'array<vec4f>', shifts: 'array<f32>' },
  writes: { slots: 'array<vec4u>', ...solvedRows },
  uniforms: { count: 'u32', steps: 'u32' },
  values(params) {
    const { rank, biases } = params;
    const { stride, registers, segments, lanes, rows } = shape(params);
    return {
      ...params,
      ...shiftValues(biases),
      RANK: rank,
      STRIDE: stride,
      QUADS: stride / 4,
      SLOT_QUADS: slotElements(rank, biases) / 4,
      BIAS_START: matrixElements(rank) / 4,
      TILE_ROWS: matrixElements(rank) / 16,
      LANES: lanes,
      ROWS: rows,
      THREADS: lanes * rows,
      PRODUCTS: segments * stride,
      SEGMENT_QUADS: stride / 4 / segments,
      tolerances: { bias: BIAS_TOLERANCE, residual: RESIDUAL_TOLERANCE },
      keep: registers ? 'registers' : 'memory',
      quads: registers ? range(stride / 4 / segments) : [],
      segments: range(segments),
    };
  },
  bytes(params) {
    const { stride, segments, rows } = shape(params);
    return rows * 4 * (stride + segments * stride + stride / 2);
  },
  samples: [
    { rank: 10, a: 'f32', biases: false, half: false },
    { rank: 100, a: 'f16', biases: true, half: true },
    { rank: 512, a: 'f16', biases: false, half: true },
  ],
});

/**
 * Largest rank of this solver and of the fused kernels: each thread has one row of A, and a workgroup has at
 * most 256 threads.
 */
export const REGISTER_RANKS = 256;

export type SolveRegistersParams = SolvedForm & { readonly halfA: boolean };

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
  reads: { work: 'array<vec4<u32>>', previous: 'array<f32>', shifts: 'array<f32>' },
  writes: {
    slots: 'array<vec4f>',
    factors: 'array<f32>',
    half: 'array<u32>',
    bias: 'array<f32>',
    status: 'array<atomic<u32>>',
  },
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
  bytes: (params) => registerSolverBytes(params.rank),
  samples: [
    { rank: 100, halfA: true, biases: true, half: true },
    { rank: 64, halfA: false, biases: false, half: false },
  ],
});
