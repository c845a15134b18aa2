import { type KernelDescriptor, reads, writes } from '../webgpu/kernel.ts';

/** Threads of a workgroup; the kernel relies on one row a thread, and on 8 x 8 scores a thread. */
const THREADS = 128;
const COLUMNS = 64;
/** Listed columns of a workgroup's rows that are counted in its memory. */
const COUNTS = 1792;

/** Tiles between two looks at the counts. */
const REFRESH = 4;

/** Rows of one workgroup. */
export const COUNT_BEFORE_ROWS = THREADS;

/**
 * The number of columns before each listed column, for `rows` rows that list any; see the kernel's text. The
 * result does not depend on the order of threads.
 */
export const countBeforeKernel: KernelDescriptor<Record<never, never>> = {
  name: 'count-before',
  bindings: [
    ...reads('row_factors', 'column_factors', 'rows', 'offsets', 'listed', 'thresholds'),
    ...writes('counts'),
  ],
  uniforms: [
    { name: 'from_row', type: 'u32' },
    { name: 'rows', type: 'u32' },
    { name: 'columns', type: 'u32' },
    { name: 'quads', type: 'u32' },
    { name: 'slabs', type: 'u32' },
    { name: 'first', type: 'u32' },
    { name: 'depth', type: 'i32' },
  ],
  needs: () => [],
  values: () => ({ THREADS, ROWS: THREADS, COLUMNS, COUNTS, REFRESH }),
  workgroup: () => ({ threads: THREADS, bytes: 32 * (THREADS + COLUMNS) + 12 * THREADS + 4 * COUNTS + 4 }),
};
