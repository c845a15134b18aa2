import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck, variantOf } from '../support/check.ts';
import { RESIDUAL_LIMIT } from '../support/limits.ts';
import { equationsOf, relativeResidual, rowsToSolve } from '../support/solved-rows.ts';
import { checkNotFinite, rowLengths, solveRows } from '../support/solver-checks.ts';
import { solveCholeskyKernel, type SolveCholeskyParams } from '../../solve/solve-cholesky.ts';

const places = ['workgroup', 'global'] as const;

const exact: readonly SolveCholeskyParams[] = [
  ...CHECKED_RANKS.map((rank) => ({ rank, where: 'workgroup' as const, biases: false, half: false })),
  ...[10, 64, 100, 128, 200].map((rank) => ({ rank, where: 'global' as const, biases: false, half: false })),
  ...places.map((where) => ({ rank: 39, where, biases: true, half: true })),
  { rank: 512, where: 'global', biases: true, half: false },
];

/**
 * Checks of Cholesky by the residuals of its solutions, with A in workgroup memory and in the row's slot.
 * Also checks that a singular A is solved, and that an infinite element of A is reported.
 */
export const solveCholeskyChecks: readonly KernelCheck[] = [
  ...exact.map((params) => ({
    name: solveCholeskyKernel.name,
    variant: variantOf(params),
    admitted: (gpu: Gpu) => gpu.admits(solveCholeskyKernel, params),
    run: (gpu: Gpu) => checkExact(gpu, params),
  })),
  { name: solveCholeskyKernel.name, variant: 'a singular A', run: checkSingular },
  {
    name: solveCholeskyKernel.name,
    variant: 'an A that is not finite',
    run: (gpu) =>
      checkNotFinite(
        gpu,
        solveCholeskyKernel,
        { rank: 20, where: 'workgroup', biases: false, half: false },
        0,
      ),
  },
];

async function checkExact(gpu: Gpu, params: SolveCholeskyParams) {
  const rows = rowsToSolve(params.rank, params.biases, rowLengths(params.rank));
  const solved = await solveRows(gpu, solveCholeskyKernel, params, rows, rows.count);
  const errors = solved.map(({ x, wrong }, entry) => {
    if (wrong !== 0) return wrong;
    return rows.work[4 * entry + 2] === 0 ? Math.hypot(...x) : relativeResidual(equationsOf(rows, entry), x);
  });
  return { error: Math.max(...errors), limit: RESIDUAL_LIMIT };
}

/** Checks that a singular A (a row of one rating with λ = 0) is solved to within rounding. */
async function checkSingular(gpu: Gpu) {
  const rows = { ...rowsToSolve(20, false, [40, 1, 50, 1, 0]), regularization: { lambda: 0 } };
  const solved = await solveRows(
    gpu,
    solveCholeskyKernel,
    { rank: 20, where: 'workgroup', biases: false, half: false },
    rows,
    rows.count,
  );
  const errors = solved.map(({ x, wrong }, entry) =>
    wrong !== 0 ? wrong : relativeResidual(equationsOf(rows, entry), x),
  );
  return { error: Math.max(...errors), limit: RESIDUAL_LIMIT };
}
