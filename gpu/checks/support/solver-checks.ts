/**
 * Runs kernels that solve rows from normal equations in slots (gpu/device/slots.ts), and measures their
 * errors.
 */
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../../webgpu/kernel.ts';
import { roundToHalf } from './float16.ts';
import { CG_BIAS_LIMIT, CG_HALF_LIMIT, CG_LIMIT, NO_ROW } from './limits.ts';
import { deviation } from './numbers.ts';
import { uploadAll } from './run-kernel.ts';
import {
  downloadOutputs,
  equationsOf,
  expectedSteps,
  otherRowsKept,
  rowsToSolve,
  shiftsOf,
  solvedRow,
  type SolvedRow,
  type SolvedRows,
  uploadRowData,
} from './solved-rows.ts';

/** Row lengths in checks of solvers. */
export function rowLengths(rank: number): number[] {
  return [rank > 256 ? 90 : 400, 0, 33, 32, 31, 2, 1];
}

type StepParams = KernelParams & { readonly rank: number; readonly biases: boolean; readonly half: boolean };

/** Lengths of rows that CG solves within a few steps if factors are made with `level` (RatedRowsOptions). */
export const LEVEL_LENGTHS = [10_000, 3000, 1000, 300];

/**
 * Compares a kernel's CG steps with the same number of steps in float64. The kernel has one workgroup per
 * row. `halfA`: it rounds A / n to float16.
 */
export async function checkSteps<Params extends StepParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  { steps, ...shape }: Params & { readonly steps: number },
  halfA: boolean,
  level = false,
) {
  const params = shape as unknown as Params;
  const { rank, biases } = params;
  const rows = rowsToSolve(rank, biases, level ? LEVEL_LENGTHS : rowLengths(rank), level);
  const solved = await solveRows(gpu, kernel, params, rows, rows.count, steps);
  const errors = solved.map(({ x, wrong }, entry) => {
    const [row, , ratings] = rows.work.subarray(4 * entry, 4 * entry + 3);
    if (wrong !== 0) return wrong;
    if (ratings === 0) return Math.hypot(...x);
    const start = Float64Array.from(rows.previous.subarray(row * rows.stride, row * rows.stride + rank));
    return deviation(
      x,
      expectedSteps(equationsOf(rows, entry, halfA ? roundToHalf : undefined), biases, start, steps),
    );
  });
  return {
    error: Math.max(...errors),
    limit: halfA ? CG_HALF_LIMIT : biases && !level ? CG_BIAS_LIMIT : CG_LIMIT,
  };
}

/**
 * Checks that the kernel reports the row of an infinite element of A: element `at` of the first slot, whose
 * row has the highest row number.
 */
export async function checkNotFinite<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  at = 5,
) {
  const rows = rowsToSolve(20, false, [40, 7, 50]);
  rows.slots[at] = Infinity;
  const { status } = await runSolver(gpu, kernel, params, rows, rows.count, 6);
  return { error: status === 2 ? 0 : Infinity, limit: 0 };
}

/**
 * Runs a solver and returns the rows that it wrote. If it reports a bad row or writes past the rows, returns
 * a single row with an infinite error.
 */
export async function solveRows<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params & { readonly biases: boolean; readonly half: boolean },
  rows: SolvedRows,
  workgroups: number,
  steps = 0,
): Promise<SolvedRow[]> {
  const { status, factors, half, bias } = await runSolver(gpu, kernel, params, rows, workgroups, steps);
  if (status !== NO_ROW || !otherRowsKept(rows, factors))
    return [{ x: new Float64Array(rows.rank), wrong: Infinity }];
  return Array.from({ length: rows.count }, (_, entry) =>
    solvedRow(rows, rows.work[4 * entry], {
      factors,
      half: params.half ? half : undefined,
      bias: params.biases ? bias : undefined,
    }),
  );
}

/** Number of ratings of each row, by row number (the entries are in another order). */
function countsByRow({ work, count }: SolvedRows): number[] {
  const counts = Array.from({ length: count }, () => 0);
  for (let at = 0; at < 4 * count; at += 4) counts[work[at]] = work[at + 2];
  return counts;
}

/** The outputs of one dispatch, and the row that it reports as bad. */
export async function runSolver<Params extends KernelParams>(
  gpu: Gpu,
  kernel: KernelDescriptor<Params>,
  params: Params,
  rows: SolvedRows,
  workgroups: number,
  steps = 0,
) {
  const { count, biases, regularization } = rows;
  const buffers = {
    ...(await uploadAll(gpu, {
      work: rows.work,
      shifts: shiftsOf(countsByRow(rows), biases, regularization),
      slots: rows.slots,
      status: new Uint32Array(4 + count).fill(NO_ROW),
    })),
    ...(await uploadRowData(gpu, rows)),
  };
  const compiled = await gpu.compile(kernel, params);
  const { bytes } = await gpu
    .pass(`check ${kernel.name}`)
    .dispatch(compiled, buffers, { count, steps }, workgroups)
    .submit({ read: { buffer: buffers.status, bytes: 4 } });
  const outputs = await downloadOutputs(gpu, buffers, rows);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return { status: new Uint32Array(bytes)[0], ...outputs };
}
