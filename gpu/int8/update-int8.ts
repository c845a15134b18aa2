import { kernelOf, range, reads, writes } from '../webgpu/kernel.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { registerSolverValues } from '../solve/solve-cg-registers.ts';
import { tensorCgBytes, tensorCgValues } from '../update/tensor-cg.ts';
import { BINS_AHEAD, int8Plan, int8Values, int8Workgroup } from './int8-plan.ts';
import type { NormalEquationsInt8Params } from './normal-equations-int8.ts';

export type UpdateInt8Params = NormalEquationsInt8Params & {
  /** True: CG runs on tensor cores with A / n in float16; false: A is in registers. See update-tensor.ts. */
  readonly halfA: boolean;
  /**
   * Only with `halfA`: A is moved from the accumulators of the tensor cores to their operands through
   * workgroup memory. This is the number of 16 x 16 tiles that are in that memory at the same time. Default:
   * the number that fits the memory for staged rows of θ.
   */
  readonly room?: number;
};

/**
 * The fused kernel with θ in 8 bits: like update-tensor, it computes A of a row and solves the row without
 * writing A to device memory. `fixed` and `scales`: see normal-equations-int8.ts.
 */
export const updateInt8Kernel = kernelOf<UpdateInt8Params>()({
  name: 'update-int8',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      scales: 'array<f32>',
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
  needs: () => ['f16', 'subgroups', 'int8'],
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
