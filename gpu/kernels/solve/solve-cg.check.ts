import { conjugateGradient } from '../../../cpu/reference/conjugate-gradient.ts';
import { solveCgKernel, type SolveCgParams } from './solve-cg.ts';
import { solveCholeskyKernel, type SolveCholeskyParams } from './solve-cholesky.ts';
import { solveCgRegistersKernel, type SolveRegistersParams } from '../normal-equations/normal-equations-tensor.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelDescriptor, KernelParams } from '../kernel.ts';
import type { KernelCheck } from '../checking/check.ts';
import { roundToHalf } from '../checking/float16.ts';
import { deviation } from '../checking/numbers.ts';
import { equationsOf, otherRowsKept, relativeResidual, rowsToSolve, solvedRow, type SolvedRow, type SolvedRows } from '../checking/solved-rows.ts';

export const NO_ROW = 0xffff_ffff;
/** Of the residual in the exact equations, over ‖b‖. */
export const RESIDUAL_LIMIT = 1e-4;
/** Of the largest element of x after as many steps in float64. */
export const CG_LIMIT = 1e-4;
/** The same where A is rounded to float16: an adapter's rounding may go the other way in its last bit. */
export const CG_HALF_LIMIT = 4e-3;
/** With biases A has one eigenvalue far above the others, and float32 loses the directions' conjugacy, in any implementation. */
export const CG_BIAS_LIMIT = 2e-3;

const ranks = [1, 7, 10, 32, 63, 64, 100, 128, 200];

const places = ['workgroup', 'global'] as const;

const exact: readonly SolveCholeskyParams[] = [
  ...ranks.map((rank) => ({ rank, where: 'workgroup' as const, biases: false, half: false })),
  ...[10, 64, 100, 128, 200].map((rank) => ({ rank, where: 'global' as const, biases: false, half: false })),
  ...places.map((where) => ({ rank: 39, where, biases: true, half: true })),
  { rank: 512, where: 'global', biases: true, half: false },
];

const common = { steps: 6, a: 'f32', biases: false, half: false } as const;

const approximate: readonly SolveCgParams[] = [
  ...[...ranks, 512].map((rank) => ({ ...common, rank })),
  ...[7, 64, 100, 200].map((rank) => ({ ...common, rank, a: 'f16' as const })),
  ...[10, 100, 140].map((rank) => ({ ...common, rank, biases: true, half: true })),
  { ...common, rank: 24, a: 'f16', biases: true, half: true },
  { ...common, rank: 10, steps: 1 },
  { ...common, rank: 10, steps: 40 },
];

const registers = { steps: 6, halfA: false, biases: false, half: false };

const inRegisters: readonly SolveRegistersParams[] = [
  ...ranks.filter((rank) => rank <= 128).map((rank) => ({ ...registers, rank })),
  ...[7, 64, 100, 200, 256].map((rank) => ({ ...registers, rank, halfA: true, half: true })),
  ...[10, 100].map((rank) => ({ ...registers, rank, biases: true, half: true })),
  { ...registers, rank: 24, halfA: true, biases: true, half: true },
  { ...registers, rank: 10, steps: 1 },
];

/** Exact solves by their residual, in workgroup memory and in place; and that a singular A is reported. */
export const solveCholeskyChecks: readonly KernelCheck[] = [
  ...exact.map((params) => ({ name: solveCholeskyKernel.name, variant: variantOf(params), admitted: (gpu: Gpu) => gpu.admits(solveCholeskyKernel, params), run: (gpu: Gpu) => checkExact(gpu, params) })),
  { name: solveCholeskyKernel.name, variant: 'a singular A', run: checkSingular },
];

/** The same steps in float64 from the same start. */
export const solveCgChecks: readonly KernelCheck[] = [
  ...approximate.map((params) => ({ name: solveCgKernel.name, variant: variantOf(params), run: (gpu: Gpu) => checkSteps(gpu, solveCgKernel, params, params.a === 'f16') })),
  { name: solveCgKernel.name, variant: 'an A that is not finite', run: (gpu: Gpu) => checkNotFinite(gpu, solveCgKernel, { ...common, rank: 20 }) },
];

/** The same with A in registers, a workgroup a row. */
export const solveCgRegistersChecks: readonly KernelCheck[] = [
  ...inRegisters.map((params) => ({
    name: solveCgRegistersKernel.name,
    variant: variantOf(params),
    admitted: (gpu: Gpu) => gpu.admits(solveCgRegistersKernel, params),
    run: (gpu: Gpu) => checkSteps(gpu, solveCgRegistersKernel, params, params.halfA),
  })),
  {
    name: solveCgRegistersKernel.name,
    variant: 'an A that is not finite',
    admitted: (gpu) => gpu.admits(solveCgRegistersKernel, { ...registers, rank: 20 }),
    run: (gpu) => checkNotFinite(gpu, solveCgRegistersKernel, { ...registers, rank: 20 }),
  },
];

/** "rank 100, biases" */
export function variantOf(params: KernelParams): string {
  return Object.entries(params)
    .filter(([, value]) => value !== false)
    .map(([name, value]) => (value === true ? name : `${name} ${value}`))
    .join(', ');
}

function lengthsFor(rank: number): number[] {
  return [rank > 256 ? 90 : 400, 0, 33, 32, 31, 2, 1];
}

async function checkExact(gpu: Gpu, params: SolveCholeskyParams) {
  const rows = rowsToSolve(params.rank, params.biases, lengthsFor(params.rank));
  const solved = await solve(gpu, solveCholeskyKernel, params, rows, rows.count);
  const errors = solved.map(({ x, wrong }, entry) => {
    if (wrong !== 0) return wrong;
    return rows.work[4 * entry + 2] === 0 ? Math.hypot(...x) : relativeResidual(equationsOf(rows, entry), x);
  });
  return { error: Math.max(...errors), limit: RESIDUAL_LIMIT };
}

type StepParams = KernelParams & { readonly rank: number; readonly steps: number; readonly biases: boolean; readonly half: boolean };

/** As many workgroups as rows are enough for both kernels. `halfA`: A / n is rounded to float16. */
async function checkSteps<Params extends StepParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params, halfA: boolean) {
  const { rank, steps, biases } = params;
  const rows = rowsToSolve(rank, biases, lengthsFor(rank));
  const solved = await solve(gpu, kernel, params, rows, rows.count);
  const errors = solved.map(({ x, wrong }, entry) => {
    const [row, , ratings] = rows.work.subarray(4 * entry, 4 * entry + 3);
    if (wrong !== 0) return wrong;
    if (ratings === 0) return Math.hypot(...x);
    const start = Float64Array.from(rows.previous.subarray(row * rows.stride, row * rows.stride + rank));
    if (biases) start[rank - 1] = rows.previousBias[row];
    const { matrix, bias } = equationsOf(rows, entry, halfA ? roundToHalf : undefined);
    return deviation(x, conjugateGradient(matrix, bias, start, steps));
  });
  return { error: Math.max(...errors), limit: halfA ? CG_HALF_LIMIT : biases ? CG_BIAS_LIMIT : CG_LIMIT };
}

/** With λ = 0 rows of one rating have a singular A: the lowest of them must be named. Row numbers descend, so that is row 1. */
async function checkSingular(gpu: Gpu) {
  const rows = { ...rowsToSolve(20, false, [40, 1, 50, 1, 0]), lambda: 0 };
  const { status } = await run(gpu, solveCholeskyKernel, { rank: 20, where: 'workgroup', biases: false, half: false }, rows, rows.count);
  return { error: status === 1 ? 0 : Infinity, limit: 0 };
}

/** An element of A in the first slot of the first row, which has the highest number, is infinite. */
async function checkNotFinite<Params extends KernelParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params) {
  const rows = rowsToSolve(20, false, [40, 7, 50]);
  rows.slots[5] = Infinity;
  const { status } = await run(gpu, kernel, params, rows, rows.count);
  return { error: status === 2 ? 0 : Infinity, limit: 0 };
}

async function solve<Params extends KernelParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params & { readonly biases: boolean; readonly half: boolean }, rows: SolvedRows, workgroups: number): Promise<SolvedRow[]> {
  const { status, factors, half, bias } = await run(gpu, kernel, params, rows, workgroups);
  if (status !== NO_ROW || !otherRowsKept(rows, factors)) return [{ x: new Float64Array(rows.rank), wrong: Infinity }];
  return Array.from({ length: rows.count }, (_, entry) => solvedRow(rows, rows.work[4 * entry], { factors, half: params.half ? half : undefined, bias: params.biases ? bias : undefined }));
}

async function run<Params extends KernelParams>(gpu: Gpu, kernel: KernelDescriptor<Params>, params: Params, rows: SolvedRows, workgroups: number) {
  const { count, lambda } = rows;
  const buffers: Record<string, GPUBuffer> = { status: await gpu.bufferOf(new Uint32Array([NO_ROW]), 'status') };
  const contents = { work: rows.work, slots: rows.slots, previous: rows.previous, previous_bias: rows.previousBias, factors: rows.factors, half: rows.half, bias: rows.bias };
  for (const [name, content] of Object.entries(contents)) buffers[name] = await gpu.bufferOf(content, name);
  const compiled = await gpu.compile(kernel, params);
  const { bytes } = await gpu.pass(`check ${kernel.name}`).dispatch(compiled, buffers, { count, lambda }, workgroups).submit({ read: { buffer: buffers.status, bytes: 4 } });
  const factors = new Float32Array(rows.factors.length);
  const half = new Uint32Array(rows.half.length);
  const bias = new Float32Array(rows.bias.length);
  await gpu.download(buffers.factors, factors);
  await gpu.download(buffers.half, half);
  await gpu.download(buffers.bias, bias);
  for (const buffer of Object.values(buffers)) buffer.destroy();
  return { status: new Uint32Array(bytes)[0], factors, half, bias };
}
