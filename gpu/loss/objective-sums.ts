import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

const THREADS = 128;

/** Rows whose objectives one workgroup sums. */
export const OBJECTIVE_ROWS = 512;

/** Numbers of `status` before the rows' objectives; the first is the lowest bad row. */
const TOLD = 4;

/**
 * Bytes of `status`. Kernels that solve rows write the lowest bad row there, followed by the objective of
 * each row.
 */
export function statusBytes(rows: number): number {
  return 4 * (TOLD + rows);
}

/**
 * Sums the objectives of rows [from_row, to_row). Writes a copy of the lowest bad row, and after it one
 * float32 for each OBJECTIVE_ROWS rows.
 */
export const objectiveSumsKernel = kernelOf<Record<string, never>>()({
  name: 'objective-sums',
  bindings: [...reads({ status: 'array<u32>' }), ...writes({ results: 'array<u32>' })],
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
  },
  needs: () => [],
  values: () => ({ THREADS, ROWS: OBJECTIVE_ROWS, TOLD }),
  workgroup: () => ({ threads: THREADS, bytes: 4 * THREADS }),
  samples: [{}],
});
