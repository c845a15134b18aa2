import type { Gpu } from '../../webgpu/gpu.ts';
import { CHECKED_RANKS, type KernelCheck, variantOf } from '../support/check.ts';
import { RESIDUAL_LIMIT } from '../support/limits.ts';
import { equationsOf, relativeResidual, rowsToSolve } from '../support/solved-rows.ts';
import { checkNotFinite, rowLengths, solveRows } from '../support/solver-checks.ts';
import { solveCholeskyKernel } from '../../solve/solve-cholesky.ts';
import {
  CHOLESKY_REGISTER_RANKS,
  chooseSolveCholeskyRegisters,
  solveCholeskyRegistersKernel,
  solveCholeskyRegistersWorkgroups,
} from '../../solve/solve-cholesky-registers.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';

type Form = { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** A kernel for a form, and the number of workgroups for a number of rows. */
interface Solver<Params extends Form & KernelParams> {
  readonly kernel: KernelDescriptor<Params>;
  readonly params: Params;
  workgroups(rows: number): number;
}

const plain = (rank: number): Form => ({ rank, biases: false, half: false });

const inRegisters: readonly Form[] = [
  ...[...CHECKED_RANKS, 39, CHOLESKY_REGISTER_RANKS]
    .filter((rank) => rank <= CHOLESKY_REGISTER_RANKS)
    .map(plain),
  ...[10, 39, 64, 100].map((rank) => ({ rank, biases: true, half: true })),
];

const inSlots: readonly Form[] = [
  ...[10, 64, 100, 128, 200].map(plain),
  { rank: 39, biases: true, half: true },
  { rank: 512, biases: true, half: false },
];

/**
 * Checks of Cholesky by the residuals of its solutions, with A in registers and in the row's slot. Also
 * checks that a singular A is solved, and that an infinite element of A is reported.
 */
export const solveCholeskyChecks: readonly KernelCheck[] = [
  ...inRegisters.map(registersSolver).flatMap(checksOf),
  ...inSlots.map(slotsSolver).flatMap(checksOf),
  ...specialChecks(registersSolver(plain(20))),
  ...specialChecks(slotsSolver(plain(20))),
];

function registersSolver({ rank, biases, half }: Form) {
  const params = chooseSolveCholeskyRegisters(rank, biases, half);
  const workgroups = (rows: number) => solveCholeskyRegistersWorkgroups(params, rows);
  return { kernel: solveCholeskyRegistersKernel, params, workgroups };
}

function slotsSolver(params: Form) {
  return { kernel: solveCholeskyKernel, params, workgroups: (rows: number) => rows };
}

function checksOf<Params extends Form & KernelParams>(solver: Solver<Params>): KernelCheck[] {
  const { kernel, params } = solver;
  return [
    {
      name: kernel.name,
      variant: variantOf(params),
      admitted: (gpu) => gpu.admits(kernel, params),
      run: (gpu) => checkExact(gpu, solver),
    },
  ];
}

function specialChecks<Params extends Form & KernelParams>(solver: Solver<Params>): KernelCheck[] {
  const { kernel, params } = solver;
  return [
    { name: kernel.name, variant: 'a singular A', run: (gpu) => checkSingular(gpu, solver) },
    {
      name: kernel.name,
      variant: 'an A that is not finite',
      run: (gpu) => checkNotFinite(gpu, kernel, params, 0),
    },
  ];
}

async function checkExact<Params extends Form & KernelParams>(
  gpu: Gpu,
  { kernel, params, workgroups }: Solver<Params>,
) {
  const rows = rowsToSolve(params.rank, params.biases, rowLengths(params.rank));
  const solved = await solveRows(gpu, kernel, params, rows, workgroups(rows.count));
  const errors = solved.map(({ x, wrong }, entry) => {
    if (wrong !== 0) return wrong;
    return rows.work[4 * entry + 2] === 0 ? Math.hypot(...x) : relativeResidual(equationsOf(rows, entry), x);
  });
  return { error: Math.max(...errors), limit: RESIDUAL_LIMIT };
}

/** Checks that a singular A (a row of one rating with λ = 0) is solved to within rounding. */
async function checkSingular<Params extends Form & KernelParams>(
  gpu: Gpu,
  { kernel, params, workgroups }: Solver<Params>,
) {
  const rows = {
    ...rowsToSolve(params.rank, false, [40, 1, 50, 1, 0]),
    regularization: { lambda: 0 },
  };
  const solved = await solveRows(gpu, kernel, params, rows, workgroups(rows.count));
  const errors = solved.map(({ x, wrong }, entry) =>
    wrong !== 0 ? wrong : relativeResidual(equationsOf(rows, entry), x),
  );
  return { error: Math.max(...errors), limit: RESIDUAL_LIMIT };
}
