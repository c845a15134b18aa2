import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck, variantOf } from '../support/check.ts';
import { RESIDUAL_LIMIT } from '../support/limits.ts';
import { gradientError, minimumError } from '../support/minima.ts';
import { worse } from '../support/numbers.ts';
import { equationsOf, rowsToSolve } from '../support/solved-rows.ts';
import { checkNotFinite, rowLengths, solveRows } from '../support/solver-checks.ts';
import { solveNonnegativeKernel, type SolveNonnegativeParams } from '../../solve/solve-nonnegative.ts';

const variants: readonly SolveNonnegativeParams[] = [
  ...CHECKED_RANKS.map((rank) => ({ rank, biases: false, half: false })),
  { rank: 39, biases: true, half: true },
  { rank: 128, biases: true, half: false },
  { rank: 300, biases: true, half: false },
];

const small = { rank: 20, biases: false, half: false } as const;

/**
 * Checks of minima over x >= 0 by their gradients, and against the float64 version on the CPU. Also checks
 * that a singular A is solved, and that an infinite element of A is reported.
 */
export const solveNonnegativeChecks: readonly KernelCheck[] = [
  ...variants.map((params) => ({
    name: solveNonnegativeKernel.name,
    variant: variantOf(params),
    run: (gpu: Gpu) => check(gpu, params),
  })),
  { name: solveNonnegativeKernel.name, variant: 'a singular A', run: checkSingular },
  {
    name: solveNonnegativeKernel.name,
    variant: 'an A that is not finite',
    run: (gpu) => checkNotFinite(gpu, solveNonnegativeKernel, small, 0),
  },
];

async function check(gpu: Gpu, params: SolveNonnegativeParams) {
  const rows = rowsToSolve(params.rank, params.biases, rowLengths(params.rank));
  const solved = await solveRows(gpu, solveNonnegativeKernel, params, rows, rows.count);
  const errors = solved.map(({ x, wrong }, entry) => {
    if (wrong !== 0) return wrong;
    return rows.work[4 * entry + 2] === 0
      ? Math.hypot(...x)
      : minimumError(equationsOf(rows, entry), x, params.biases);
  });
  return { error: errors.reduce(worse), limit: 1 };
}

/** Checks that the gradients are 0 up to rounding if A is singular (a row of one rating with λ = 0). */
async function checkSingular(gpu: Gpu) {
  const rows = { ...rowsToSolve(20, false, [40, 1, 50, 1, 0]), regularization: { lambda: 0 } };
  const solved = await solveRows(gpu, solveNonnegativeKernel, small, rows, rows.count);
  const errors = solved.map(({ x, wrong }, entry) =>
    wrong !== 0 ? wrong : gradientError(equationsOf(rows, entry), x),
  );
  return { error: errors.reduce(worse), limit: RESIDUAL_LIMIT };
}
