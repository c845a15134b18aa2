import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

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
  bindings: [...reads({ status: 'array<u32>' }), ...writes({ results: 'array<u32>' })],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
  },
  values: () => ({ THREADS, ROWS: OBJECTIVE_ROWS, STATUS_HEADER }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
});
