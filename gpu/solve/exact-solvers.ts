import type { ExactSolver } from '../../operators/tasks/task-types.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { CompiledKernel } from '../webgpu/compiled-kernel.ts';
import { chooseSolveCholesky, solveCholeskyKernel } from './solve-cholesky.ts';
import { solveNonnegativeKernel } from './solve-nonnegative.ts';

/**
 * The parameters of a solver's kernel. `rank`: number of features; `half`: the float16 copy of the factors is
 * written too.
 */
type SolvedForm = { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** An exact solver of a row's normal equations on a GPU, as opposed to a number of CG steps. */
interface GpuSolver {
  /** Compiles the solver's kernel, in which one workgroup solves one row. */
  readonly compile: (gpu: Gpu, form: SolvedForm) => Promise<CompiledKernel>;
  /**
   * True if the kernel also writes each row's objective xᵀA x - 2 bᵀx, from whose sum the loss is computed.
   */
  readonly writesObjective: boolean;
  /**
   * True if a row with few ratings may be solved by its dual system (n unknowns for n ratings;
   * update-short.ts) instead, since that has the same solution x.
   */
  readonly dual: boolean;
}

export const exactSolvers: Readonly<Record<ExactSolver, GpuSolver>> = {
  cholesky: {
    compile: (gpu, { rank, biases, half }) =>
      gpu.compile(
        solveCholeskyKernel,
        chooseSolveCholesky(rank, biases, half, { bytes: gpu.info.limits.workgroupBytes }),
      ),
    writesObjective: true,
    dual: true,
  },
  // Dual systems cannot be used: their unknowns are not x, so each condition x_k >= 0 would become an
  // inequality between all unknowns.
  nonnegative: {
    compile: (gpu, form) => gpu.compile(solveNonnegativeKernel, form),
    writesObjective: false,
    dual: false,
  },
};
