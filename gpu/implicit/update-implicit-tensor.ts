import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { accumulateBytes, accumulateValues, tensorNeeds } from '../equations/normal-equations-tensor.ts';
import { subgroupsFor } from '../equations/tensor-plan.ts';
import { registerSolverBytes, registerSolverValues } from '../solve/solve-cg-registers.ts';

export type UpdateImplicitTensorParams = {
  readonly rank: number;
  /** Number of ratings that are copied to workgroup memory at a time; see TensorParams. */
  readonly bin: number;
};

const of = ({ rank, bin }: UpdateImplicitTensorParams) => ({ rank, bin, biases: false, implicit: true });

/**
 * The fused kernel for implicit data: a workgroup computes A of a row on tensor cores and solves the row by
 * CG, without writing A to device memory. It serves ranks up to 128, at which A in float32 fits the
 * registers. Workgroups take rows from the list one after the other, so any number of workgroups may be
 * dispatched.
 *
 * - `gram`: the Gram matrix G (F x F, F: rank padded to whole tiles), which is added to every A.
 * - `shifts`: for each row the number that is added to the diagonal of its A.
 */
export const updateImplicitTensorKernel = kernelOf<UpdateImplicitTensorParams>()({
  name: 'update-implicit-tensor',
  bindings: [
    ...reads({
      work: 'array<vec4<u32>>',
      indices: 'array<u32>',
      values: 'array<f32>',
      fixed: 'array<vec4<u32>>',
      gram: 'array<vec4f>',
      shifts: 'array<f32>',
      previous: 'array<f32>',
    }),
    ...writes({ factors: 'array<f32>', half: 'array<f16>', status: 'array<atomic<u32>>' }),
  ],
  uniforms: {
    count: 'u32',
    zero_row: 'u32',
    scale: 'f32',
    unscale: 'f32',
    alpha: 'f32',
    base: 'f32',
    steps: 'u32',
  },
  needs: () => tensorNeeds,
  values: (params) => ({
    ...accumulateValues(of(params)),
    ...registerSolverValues({ halfA: false }),
    GRAM: true,
    AHEAD: true,
  }),
  workgroup: (params) => ({
    threads: subgroupsFor(params.rank) * 32,
    bytes: accumulateBytes(of(params)) + registerSolverBytes(params.rank),
  }),
  samples: [
    { rank: 64, bin: 32 },
    { rank: 100, bin: 32 },
  ],
});
