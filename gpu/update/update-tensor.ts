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
   * CG multiplies A/n in float16 on tensor cores (cuMF_ALS, section 4.2); otherwise A is in registers in
   * float32.
   */
  readonly halfA: boolean;
  /**
   * Tiles of A / n that pass through workgroup memory together; default: the number that the memory of the
   * sums can hold.
   */
  readonly room?: number;
};

/**
 * The fused half-iteration, which keeps A of a row on the chip. Ranks to 256; to 144 with float32 A, which
 * must fit the registers. Workgroups walk the list of rows, so any number of them may be dispatched.
 * `fixed_bias`: see normal-equations-tensor.
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

/** Tiles of A pass through the memory of the sums, in several rounds where they do not fit. */
function cgPlan(params: UpdateTensorParams) {
  return { ...accumulatePlan(params), staged: gatheredVectors(params), room: params.room };
}
