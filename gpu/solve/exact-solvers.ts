import type { ExactSolver } from '../../operators/tasks/task-types.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { CompiledKernel } from '../webgpu/compiled-kernel.ts';
import { chooseSolveCholesky, solveCholeskyKernel } from './solve-cholesky.ts';
import { solveNonnegativeKernel } from './solve-nonnegative.ts';

/**
 * The form of solved rows. `rank`: number of features; `half`: the float16 mirror of the factors is written
 * too.
 */
type SolvedForm = { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** An exact solver on a GPU. */
interface GpuSolver {
  /** Compiles its kernel, which solves one row a workgroup. */
  readonly compile: (gpu: Gpu, form: SolvedForm) => Promise<CompiledKernel>;
  /** True if the kernel writes each row's objective (see gpu/parts), whose sum gives the loss. */
  readonly writesObjective: boolean;
  /**
   * True if a short row may be solved by its dual system instead (update-short.ts), which gives the same x.
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
  // `dual` is false: in the dual system, x >= 0 would become one bound for each feature.
  nonnegative: {
    compile: (gpu, form) => gpu.compile(solveNonnegativeKernel, form),
    writesObjective: false,
    dual: false,
  },
};
