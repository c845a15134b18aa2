import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import {
  accumulateBytes,
  accumulatePlan,
  accumulateValues,
  gatheredVectors,
  ringBytes,
  tensorNeeds,
  type TensorParams,
} from '../equations/normal-equations-tensor.ts';
import { subgroupsFor } from '../equations/tensor-plan.ts';
import { BINS_AHEAD, int8Needs, int8Plan, int8Values, int8Workgroup } from '../int8/int8-plan.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { registerSolverBytes, registerSolverValues } from '../solve/solve-cg-registers.ts';
import { tensorCgBytes, tensorCgValues } from './tensor-cg.ts';

/** How a fused kernel keeps A while it solves. */
type SolvingParams = {
  /**
   * True: CG runs on tensor cores with A / n in float16 (cuMF_ALS, section 4.2). False: A is in float32 in
   * registers.
   */
  readonly halfA: boolean;
  /**
   * Only with `halfA`: A is moved from the accumulators of the tensor cores to their operands through
   * workgroup memory. This is the number of 16 x 16 tiles that are in that memory at the same time. Default:
   * the number that fits the memory for staged rows of θ.
   */
  readonly room?: number;
};

export type UpdateTensorParams = TensorParams & SolvingParams;

export type UpdateInt8Params = { readonly rank: number; readonly biases: boolean } & SolvingParams;

/** `bin`: see TensorParams. */
export type UpdateImplicitTensorParams = Pick<TensorParams, 'rank' | 'bin'>;

const rated = {
  work: 'array<vec4<u32>>',
  indices: 'array<u32>',
  values: 'array<f32>',
  fixed: 'array<vec4<u32>>',
} as const;

const solved = { factors: 'array<f32>', half: 'array<f16>', status: 'array<atomic<u32>>' } as const;

const counts = { count: 'u32', zero_row: 'u32', scale: 'f32', unscale: 'f32', steps: 'u32' } as const;

/**
 * The fused kernel of a half-iteration: a workgroup computes A of a row and solves the row, without writing A
 * to device memory. It serves ranks up to 256 with `halfA`, and up to 144 without, since then A must fit the
 * registers. Workgroups take rows from the list one after the other, so any number of workgroups may be
 * dispatched. `fixed_bias`: see normal-equations-tensor.
 */
export const updateTensorKernel = kernelOf<UpdateTensorParams>()({
  name: 'update-tensor',
  bindings: [
    ...reads({ ...rated, fixed_bias: 'array<f32>', previous: 'array<f32>', shifts: 'array<f32>' }),
    ...writes({ ...solved, bias: 'array<f32>' }),
  ],
  uniforms: { ...counts, mean: 'f32' },
  needs: () => tensorNeeds,
  values: (params) => ({
    ...accumulateValues(params),
    ...shiftValues(params.biases),
    ...registerSolverValues(params),
    ...(params.halfA ? tensorCgValues(params.rank, params.biases, cgPlan(params)) : {}),
  }),
  workgroup: (params) => {
    const { rank, biases, halfA } = params;
    return {
      threads: subgroupsFor(rank) * 32,
      bytes:
        ringBytes(params) +
        (halfA
          ? tensorCgBytes(rank, biases, cgPlan(params))
          : 16 * accumulatePlan(params).staged + registerSolverBytes(rank)),
    };
  },
  samples: [
    { rank: 100, bin: 32, biases: true, halfA: true },
    { rank: 64, bin: 32, biases: false, halfA: false },
    { rank: 136, bin: 32, biases: false, halfA: true, room: 13 },
  ],
});

/**
 * The memory of CG with `halfA`: A is moved through the workgroup memory that held the staged rows of θ, in
 * several phases if the tiles do not all fit.
 */
function cgPlan(params: UpdateTensorParams) {
  return { ...accumulatePlan(params), staged: gatheredVectors(params), room: params.room };
}

/** The same with θ in 8 bits. `fixed` and `scales`: see normal-equations-int8.ts. */
export const updateInt8Kernel = kernelOf<UpdateInt8Params>()({
  name: 'update-int8',
  bindings: [
    ...reads({
      ...rated,
      scales: 'array<f32>',
      fixed_bias: 'array<f32>',
      previous: 'array<f32>',
      shifts: 'array<f32>',
    }),
    ...writes({ ...solved, bias: 'array<f32>' }),
  ],
  uniforms: { ...counts, mean: 'f32' },
  needs: () => int8Needs,
  values: (params) => ({
    ...int8Values(params),
    sets: range(BINS_AHEAD.ofRows(params)),
    ...shiftValues(params.biases),
    ...registerSolverValues(params),
    ...(params.halfA
      ? tensorCgValues(params.rank, params.biases, { ...int8Plan(params), room: params.room })
      : {}),
  }),
  workgroup: (params) => {
    const { threads, bytes } = int8Workgroup(params);
    return {
      threads,
      bytes: params.halfA
        ? tensorCgBytes(params.rank, params.biases, { ...int8Plan(params), room: params.room })
        : bytes,
    };
  },
  samples: [
    { rank: 100, biases: true, halfA: false },
    { rank: 64, biases: true, halfA: false },
    { rank: 200, biases: false, halfA: true },
    { rank: 100, biases: false, halfA: true, room: 6 },
  ],
});

/**
 * The same for implicit data, at ranks up to 128, at which A in float32 fits the registers. `gram`: the Gram
 * matrix G (F x F, F: rank padded to whole tiles), which is added to every A. `shifts`: for each row the
 * number that is added to the diagonal of its A.
 */
export const updateImplicitTensorKernel = kernelOf<UpdateImplicitTensorParams>()({
  name: 'update-implicit-tensor',
  bindings: [
    ...reads({ ...rated, gram: 'array<vec4f>', shifts: 'array<f32>', previous: 'array<f32>' }),
    ...writes(solved),
  ],
  uniforms: { ...counts, alpha: 'f32', base: 'f32' },
  needs: () => tensorNeeds,
  values: (params) => ({
    ...accumulateValues(weighted(params)),
    ...registerSolverValues({ halfA: false }),
    GRAM: true,
    AHEAD: true,
  }),
  workgroup: (params) => ({
    threads: subgroupsFor(params.rank) * 32,
    bytes: accumulateBytes(weighted(params)) + registerSolverBytes(params.rank),
  }),
  samples: [
    { rank: 64, bin: 32 },
    { rank: 100, bin: 32 },
  ],
});

function weighted({ rank, bin }: UpdateImplicitTensorParams): TensorParams {
  return { rank, bin, biases: false, implicit: true };
}
