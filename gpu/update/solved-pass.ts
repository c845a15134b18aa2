import type { Gpu } from '../webgpu/gpu.ts';
import { kernelOf } from '../webgpu/kernel.ts';
import type { KernelTimes, Pass, SubmitOptions } from '../webgpu/pass.ts';

const THREADS = 128;

/** Rows whose objectives one workgroup sums. */
export const OBJECTIVE_ROWS = 512;

/**
 * Numbers of `status` before the rows' objectives. Only the first is used: the lowest row without a finite
 * solution.
 */
const STATUS_HEADER = 4;

/**
 * Bytes of `status`, the buffer in which kernels that solve rows write the lowest row without a finite
 * solution, followed by the objective xᵀA x - 2 bᵀx of each row.
 */
export function statusBytes(rows: number): number {
  return 4 * (STATUS_HEADER + rows);
}

/**
 * Sums the objectives of the rows [from_row, to_row), which solvers have written to `status`. Writes to
 * `results` the lowest row without a finite solution, copied from `status`, and after it one float32 sum for
 * each OBJECTIVE_ROWS rows.
 */
export const objectiveSumsKernel = kernelOf()({
  name: 'objective-sums',
  reads: { status: 'array<u32>' },
  writes: { results: 'array<u32>' },
  uniforms: { from_row: 'u32', to_row: 'u32' },
  values: () => ({ THREADS, ROWS: OBJECTIVE_ROWS, STATUS_HEADER }),
  bytes: 4 * THREADS,
});

/**
 * Initial value of the first number of `status`, which kernels lower to the number of a row without a finite
 * solution.
 */
const NO_ROW = 0xffff_ffff;

/** Rows [from, to) that a pass solves; `measured` requests the sum of their objectives. */
export interface SolvedRange {
  readonly from: number;
  readonly to: number;
  readonly measured?: boolean;
}

export interface SolvedPass {
  /** The first row without a finite solution, or -1. */
  readonly badRow: number;
  /** With `measured`: the sum of xᵀA x - 2 bᵀx over the solved rows. See the task `update`. */
  readonly objective?: number;
  /** Times of the kernels, with `timed`. */
  readonly times: KernelTimes;
}

/**
 * Submits one pass of solving kernels and reads its result. `add` adds the kernels to the pass. They write to
 * the buffer `status`: the lowest row without a finite solution, and the objective of each row. With
 * `measured`, one more kernel sums the objectives on the GPU.
 */
export async function submitSolved(
  gpu: Gpu,
  label: string,
  { from, to, measured = false }: SolvedRange,
  options: Pick<SubmitOptions, 'timed' | 'submitted'>,
  add: (pass: Pass, status: GPUBuffer) => Promise<void>,
): Promise<SolvedPass> {
  const status = await gpu.scratch('status', statusBytes(to));
  gpu.device.queue.writeBuffer(status, 0, new Uint32Array([NO_ROW]));
  const pass = gpu.pass(label);
  if (!measured) {
    await add(pass, status);
    const { times, bytes } = await pass.submit({ ...options, read: { buffer: status, bytes: 4 } });
    return { badRow: rowOf(new Uint32Array(bytes)[0]), times };
  }
  const groups = Math.max(1, Math.ceil((to - from) / OBJECTIVE_ROWS));
  const [kernel, results] = await Promise.all([
    gpu.compile(objectiveSumsKernel, {}),
    gpu.scratch('objectives', 4 * (1 + groups)),
  ]);
  await add(pass, status);
  const { times, bytes } = await pass
    .dispatch(kernel, { status, results }, { from_row: from, to_row: to }, groups)
    .submit({ ...options, read: { buffer: results, bytes: 4 * (1 + groups) } });
  const sums = new Float32Array(bytes, 4);
  let objective = 0;
  for (let k = 0; k < sums.length; k++) objective += sums[k];
  return { badRow: rowOf(new Uint32Array(bytes, 0, 1)[0]), objective, times };
}

function rowOf(bad: number): number {
  return bad === NO_ROW ? -1 : bad;
}
