/**
 * Checks of kernels that solve rows from normal equations in slots (gpu/device/slots.ts): CG against the same
 * number of steps in float64 from the same start, Cholesky by residuals, minima over x >= 0 by gradients.
 */
import { addMatrixShifts, blockShifts } from '../solve/row-shifts.ts';
import {
  solveCgRegistersKernel,
  type SolveRegistersParams,
  solveCgKernel,
  type SolveCgParams,
} from '../solve/solve-cg.ts';
import {
  CHOLESKY_REGISTER_RANKS,
  chooseSolveCholeskyRegisters,
  solveCholeskyRegistersKernel,
  solveCholeskyRegistersWorkgroups,
  solveCholeskyKernel,
} from '../solve/solve-cholesky.ts';
import { solveNonnegativeKernel } from '../solve/solve-nonnegative.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../webgpu/kernel.ts';
import {
  CHECKED_RANKS,
  type KernelCheck,
  variantOf,
  deviation,
  worse,
  CG_BIAS_LIMIT,
  CG_HALF_LIMIT,
  CG_LIMIT,
  NO_ROW,
  RESIDUAL_LIMIT,
  roundToHalf,
} from './support/check.ts';
import { gradientError, minimumError } from './support/rated-problem.ts';
import {
  equationsOf,
  expectedSteps,
  LEVEL_LENGTHS,
  otherRowsKept,
  relativeResidual,
  rowsToSolve,
  shiftsOf,
  solvedRow,
  type SolvedRows,
  regularizationFor,
} from './support/rated-rows.ts';
import { runKernel } from './support/run-kernel.ts';

type Form = KernelParams & { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** A kernel for a form, and the number of workgroups for a number of rows. */
interface Solver<Params extends Form> {
  readonly kernel: KernelDescriptor<Params>;
  readonly params: Params;
  /** Default: one for each row. */
  workgroups?(rows: number): number;
}

const common = { a: 'f32', biases: false, half: false } as const;

const cgForms: readonly (SolveCgParams & { readonly steps: number })[] = [
  ...[...CHECKED_RANKS, 512].map((rank) => ({ ...common, rank, steps: 6 })),
  ...[7, 64, 100, 200].map((rank) => ({ ...common, rank, a: 'f16' as const, steps: 6 })),
  ...[10, 100, 140].map((rank) => ({ ...common, rank, biases: true, half: true, steps: 6 })),
  { ...common, rank: 24, a: 'f16', biases: true, half: true, steps: 6 },
  { ...common, rank: 10, steps: 1 },
  { ...common, rank: 10, steps: 40 },
];

const registers = { halfA: false, biases: false, half: false };

const registerForms: readonly (SolveRegistersParams & { readonly steps: number })[] = [
  ...[...CHECKED_RANKS.filter((rank) => rank <= 128), 144].map((rank) => ({ ...registers, rank, steps: 6 })),
  ...[7, 64, 100, 200, 256].map((rank) => ({ ...registers, rank, halfA: true, half: true, steps: 6 })),
  ...[10, 100].map((rank) => ({ ...registers, rank, biases: true, half: true, steps: 6 })),
  { ...registers, rank: 24, halfA: true, biases: true, half: true, steps: 6 },
  { ...registers, rank: 10, steps: 1 },
];

const plain = (rank: number) => ({ rank, biases: false, half: false });
const biased = (rank: number) => ({ rank, biases: true, half: true });

/** Kernels that every GPU runs. */
export const solveChecks: readonly KernelCheck[] = [
  ...[...CHECKED_RANKS, 39, CHOLESKY_REGISTER_RANKS]
    .filter((rank) => rank <= CHOLESKY_REGISTER_RANKS)
    .map((rank) => exactCheck(choleskyInRegisters(plain(rank)))),
  ...[10, 39, 64, 100].map((rank) => exactCheck(choleskyInRegisters(biased(rank)))),
  ...[...[10, 64, 100, 128, 200].map(plain), biased(39), { ...biased(512), half: false }].map((params) =>
    exactCheck({ kernel: solveCholeskyKernel, params }),
  ),
  ...specialChecks(choleskyInRegisters(plain(20)), 0),
  ...specialChecks({ kernel: solveCholeskyKernel, params: plain(20) }, 0),
  ...[
    ...CHECKED_RANKS.map(plain),
    biased(39),
    ...[128, 300].map((rank) => ({ ...biased(rank), half: false })),
  ].map((params) => minimumCheck({ kernel: solveNonnegativeKernel, params })),
  ...specialChecks({ kernel: solveNonnegativeKernel, params: plain(20) }, 0, gradientError),
  ...cgForms.map(({ steps, ...params }) =>
    stepsCheck({ kernel: solveCgKernel, params }, steps, params.a === 'f16'),
  ),
  stepsCheck({ kernel: solveCgKernel, params: { ...common, ...biased(32) } }, 12, false, true),
  notFiniteCheck({ kernel: solveCgKernel, params: { ...common, rank: 20 } }, 5),
];

/** CG with A in registers, for GPUs with subgroups of 32 threads. */
export const solveCgRegistersChecks: readonly KernelCheck[] = [
  ...registerForms.map(({ steps, ...params }) =>
    stepsCheck({ kernel: solveCgRegistersKernel, params }, steps, params.halfA),
  ),
  ...[32, 64, 128].map((rank) =>
    stepsCheck(
      { kernel: solveCgRegistersKernel, params: { ...registers, ...biased(rank) } },
      12,
      false,
      true,
    ),
  ),
  notFiniteCheck({ kernel: solveCgRegistersKernel, params: { ...registers, rank: 20 } }, 5),
];

function choleskyInRegisters({ rank, biases, half }: ReturnType<typeof plain>) {
  const params = chooseSolveCholeskyRegisters(rank, biases, half);
  const workgroups = (rows: number) => solveCholeskyRegistersWorkgroups(params, rows);
  return { kernel: solveCholeskyRegistersKernel, params, workgroups };
}

function checkOf<Params extends Form>(
  { kernel, params }: Solver<Params>,
  variant: string,
  run: KernelCheck['run'],
): KernelCheck {
  return { name: kernel.name, variant, admitted: (gpu) => gpu.admits(kernel, params), run };
}

function lengthsFor(rank: number): number[] {
  return [rank > 256 ? 90 : 400, 0, 33, 32, 31, 2, 1];
}

/**
 * `halfA`: the kernel rounds A / n to float16. `level`: rows and a start from which CG converges within a few
 * steps (RatedRowsOptions).
 */
function stepsCheck<Params extends Form>(
  solver: Solver<Params>,
  steps: number,
  halfA: boolean,
  level = false,
): KernelCheck {
  const { rank, biases } = solver.params;
  const variant = `${variantOf({ steps, ...solver.params })}${level ? ", from the start's level" : ''}`;
  return checkOf(solver, variant, async (gpu) => {
    const rows = rowsToSolve(rank, biases, level ? LEVEL_LENGTHS : lengthsFor(rank), level);
    const error = await rowsError(gpu, solver, rows, steps, (x, entry) => {
      const row = rows.work[4 * entry];
      const start = Float64Array.from(rows.previous.subarray(row * rows.stride, row * rows.stride + rank));
      const equations = equationsOf(rows, entry, halfA ? roundToHalf : undefined);
      return deviation(x, expectedSteps(equations, biases, start, steps));
    });
    return { error, limit: halfA ? CG_HALF_LIMIT : biases && !level ? CG_BIAS_LIMIT : CG_LIMIT };
  });
}

function exactCheck<Params extends Form>(solver: Solver<Params>): KernelCheck {
  const { rank, biases } = solver.params;
  return checkOf(solver, variantOf(solver.params), async (gpu) => {
    const rows = rowsToSolve(rank, biases, lengthsFor(rank));
    const error = await rowsError(gpu, solver, rows, 0, (x, entry) =>
      relativeResidual(equationsOf(rows, entry), x),
    );
    return { error, limit: RESIDUAL_LIMIT };
  });
}

function minimumCheck<Params extends Form>(solver: Solver<Params>): KernelCheck {
  const { rank, biases } = solver.params;
  return checkOf(solver, variantOf(solver.params), async (gpu) => {
    const rows = rowsToSolve(rank, biases, lengthsFor(rank));
    const error = await rowsError(gpu, solver, rows, 0, (x, entry) =>
      minimumError(equationsOf(rows, entry), x, biases),
    );
    return { error, limit: 1 };
  });
}

/** A singular A (a row of one rating with λ = 0) is solved to within rounding; see also notFiniteCheck. */
function specialChecks<Params extends Form>(
  solver: Solver<Params>,
  infiniteAt: number,
  errorOf: typeof gradientError = relativeResidual,
): KernelCheck[] {
  const singular = checkOf(solver, 'a singular A', async (gpu) => {
    const rows = {
      ...rowsToSolve(solver.params.rank, false, [40, 1, 50, 1, 0]),
      regularization: { lambda: 0 },
    };
    const error = await rowsError(gpu, solver, rows, 0, (x, entry) => errorOf(equationsOf(rows, entry), x));
    return { error, limit: RESIDUAL_LIMIT };
  });
  return [singular, notFiniteCheck(solver, infiniteAt)];
}

/** The kernel reports the row of an infinite element `at` of the first slot, which has the highest number. */
function notFiniteCheck<Params extends Form>(solver: Solver<Params>, at: number): KernelCheck {
  return checkOf(solver, 'an A that is not finite', async (gpu) => {
    const rows = rowsToSolve(solver.params.rank, false, [40, 7, 50]);
    rows.slots[at] = Infinity;
    const { status } = await solve(gpu, solver, rows, 6);
    return { error: status[0] === 2 ? 0 : Infinity, limit: 0 };
  });
}

/**
 * The largest error of the rows, by this measure of a row with ratings; other rows must be 0. Infinity if the
 * kernel reports a bad row or writes past the rows.
 */
async function rowsError<Params extends Form>(
  gpu: Gpu,
  solver: Solver<Params>,
  rows: SolvedRows,
  steps: number,
  errorOf: (x: Float64Array, entry: number) => number,
): Promise<number> {
  const { status, factors, half, bias } = await solve(gpu, solver, rows, steps);
  if (status[0] !== NO_ROW || !otherRowsKept(rows, factors)) return Infinity;
  let error = 0;
  for (let entry = 0; entry < rows.count; entry++) {
    const [row, , ratings] = rows.work.subarray(4 * entry, 4 * entry + 3);
    const { x, wrong } = solvedRow(rows, row, {
      factors,
      half: solver.params.half ? half : undefined,
      bias: solver.params.biases ? bias : undefined,
    });
    error = worse(error, wrong !== 0 ? wrong : ratings === 0 ? Math.hypot(...x) : errorOf(x, entry));
  }
  return error;
}

function solve<Params extends Form>(
  gpu: Gpu,
  { kernel, params, workgroups = (count) => count }: Solver<Params>,
  { work, slots, count, previous, factors, half, bias, biases, regularization }: SolvedRows,
  steps: number,
) {
  // Numbers of ratings by row: the entries are in another order.
  const counts = Array.from({ length: count }, () => 0);
  for (let at = 0; at < 4 * count; at += 4) counts[work[at]] = work[at + 2];
  const shifts = shiftsOf(counts, biases, regularization);
  const status = new Uint32Array(4 + count).fill(NO_ROW);
  const contents = { work, slots, previous, factors, half, bias, shifts, status };
  return runKernel(gpu, kernel, params, contents, {
    uniforms: { count, steps },
    workgroups: workgroups(count),
  });
}

const COUNTS = Array.from({ length: 600 }, (_, row) => (row * row) % 1009);
const [FROM, TO, STRIDE] = [3, 599, 5];

/**
 * Checks of shifts (numbers that regularization adds to the diagonal), for a range of rows. The rows' numbers
 * of ratings come from row pointers, or from a column of a matrix.
 */
export const rowShiftsChecks: readonly KernelCheck[] = [false, true].flatMap((biases) =>
  (['pointers', 'matrix'] as const).map((form) => ({
    name: 'row-shifts',
    variant: `${form}${biases ? ', biases' : ''}`,
    run: (gpu) => check(gpu, form, biases),
  })),
);

async function check(gpu: Gpu, form: 'pointers' | 'matrix', biases: boolean) {
  const pointers = new Int32Array(COUNTS.length + 1);
  COUNTS.forEach((n, row) => (pointers[row + 1] = pointers[row] + n));
  const matrix = Float32Array.from({ length: COUNTS.length * STRIDE }, (_, at) =>
    at % STRIDE === 2 ? COUNTS[Math.floor(at / STRIDE)] : -1,
  );
  const buffer = await gpu.bufferOf(form === 'pointers' ? pointers : matrix, 'counts');
  const rows = { from: FROM, to: TO, ...regularizationFor(biases) };
  const pass = gpu.pass('check row-shifts');
  const shifts =
    form === 'pointers'
      ? await blockShifts(gpu, { rowPointers: buffer, prepared: new Map() }, rows, biases)
      : await addMatrixShifts(gpu, pass, { matrix: buffer, stride: STRIDE, column: 2, row: 0 }, rows, biases);
  const width = biases ? 2 : 1;
  const { bytes } = await pass.submit({ read: { buffer: shifts, bytes: 4 * width * TO } });
  buffer.destroy();
  if (form === 'pointers') shifts.destroy();
  const found = Float64Array.from(new Float32Array(bytes).subarray(width * FROM));
  const expected = shiftsOf(COUNTS, biases, rows).subarray(width * FROM, width * TO);
  return { error: deviation(found, Float64Array.from(expected)), limit: 1e-6 };
}
