import type { ExactSolver } from '../../operators/tasks/task-types.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { CompiledKernel } from '../webgpu/pass.ts';
import { chooseSolveCholesky, solveCholeskyKernel } from './solve-cholesky.ts';
import { solveNonnegativeKernel } from './solve-nonnegative.ts';

/** Rows of f features; `half`: factors are written in float16 too. */
type SolvedForm = { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** Compiles the kernel of each exact solver, which solves a row in a workgroup. */
export const exactSolvers: Readonly<
  Record<ExactSolver, (gpu: Gpu, form: SolvedForm) => Promise<CompiledKernel>>
> = {
  cholesky: (gpu, { rank, biases, half }) =>
    gpu.compile(
      solveCholeskyKernel,
      chooseSolveCholesky(rank, biases, half, { bytes: gpu.info.limits.workgroupBytes }),
    ),
  nonnegative: (gpu, form) => gpu.compile(solveNonnegativeKernel, form),
};
