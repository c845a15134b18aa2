import type { ExactSolver } from '../../operators/tasks/task-types.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { SizedKernel } from '../webgpu/kernel.ts';
import type { SolvedForm } from './row-shifts.ts';
import {
  solveCholeskyKernel,
  CHOLESKY_REGISTER_RANKS,
  chooseSolveCholeskyRegisters,
  solveCholeskyRegistersKernel,
  solveCholeskyRegistersWorkgroups,
} from './solve-cholesky.ts';
import { solveNonnegativeKernel } from './solve-nonnegative.ts';

/** An exact solver of a row's normal equations on a GPU, as opposed to a number of CG steps. */
interface GpuSolver {
  readonly compile: (gpu: Gpu, form: SolvedForm) => Promise<SizedKernel>;
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
    async compile(gpu, { rank, biases, half }) {
      if (rank > CHOLESKY_REGISTER_RANKS)
        return {
          compiled: await gpu.compile(solveCholeskyKernel, { rank, biases, half }),
          workgroups: (rows) => rows,
        };
      const params = chooseSolveCholeskyRegisters(rank, biases, half);
      return {
        compiled: await gpu.compile(solveCholeskyRegistersKernel, params),
        workgroups: (rows) => solveCholeskyRegistersWorkgroups(params, rows),
      };
    },
    writesObjective: true,
    dual: true,
  },
  // Dual systems cannot be used: their unknowns are not x, so each condition x_k >= 0 would become an
  // inequality between all unknowns.
  nonnegative: {
    compile: async (gpu, form) => ({
      compiled: await gpu.compile(solveNonnegativeKernel, form),
      workgroups: (rows) => rows,
    }),
    writesObjective: false,
    dual: false,
  },
};
