import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import {
  accumulatePlan,
  accumulateValues,
  gatheredVectors,
  ringBytes,
  tensorNeeds,
  type TensorParams,
} from '../equations/normal-equations-tensor.ts';
import { subgroupsFor } from '../equations/tensor-plan.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { registerSolverBytes, registerSolverValues } from '../solve/solve-cg-registers.ts';
import { tensorCgBytes, tensorCgValues } from './tensor-cg.ts';

export type UpdateTensorParams = TensorParams & {
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

/**
 * The fused kernel of a half-iteration: a workgroup computes A of a row and solves the row, without writing A
 * to device memory. It serves ranks up to 256 with `halfA`, and up to 144 without, since then A must fit the
 * registers. Workgroups take rows from the list one after the other, so any number of workgroups may be
 * dispatched. `fixed_bias`: see normal-equations-tensor.
 */
export const updateTensorKernel = kernelOf<UpdateTensorParams>()({
  name: 'update-tensor',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      fixed_bias: 'array<f32>',
      previous: 'array<f32>',
      shifts: 'array<f32>',
    }),
    ...writes({
      factors: 'array<f32>',
      half: 'array<f16>',
      bias: 'array<f32>',
      status: 'array<atomic<u32>>',
    }),
  ],
  uniforms: {
    count: 'u32',
    zero_row: 'u32',
    scale: 'f32',
    unscale: 'f32',
    mean: 'f32',
    steps: 'u32',
  },
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
