import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows. All threads together compute the
 * scores of a tile of these rows and COLUMNS columns, each thread 8 x 8 of them.
 */
const THREADS = 128;
const COLUMNS = 64;
/**
 * Number of counters in workgroup memory. If a workgroup's rows list more columns, the others are counted in
 * the buffer `counts`.
 */
const COUNTS = 1792;

/** After this number of tiles the kernel checks which counts can still change. */
const REFRESH = 4;

/** Rows of one workgroup. */
export const COUNT_BEFORE_ROWS = THREADS;

/**
 * Finds the ranks of items in users' orders of all items. Each row (user) lists some columns (items), in CSR
 * form: `offsets`. The kernel counts, for each listed column, the columns with a higher score and its ties,
 * for the `rows` rows with numbers rows[from_row] and following. The result does not depend on the order of
 * threads.
 */
export const countBeforeKernel = kernelOf<Record<never, never>>()({
  name: 'count-before',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      rows: 'array<u32>',
      offsets: 'array<i32>',
      thresholds: 'array<f32>',
    }),
    ...writes({ counts: 'array<atomic<u32>>' }),
  ],
  uniforms: {
    /** `from_row`: index in the buffer `rows` of the first row. `rows`: the number of rows from there. */
    from_row: 'u32',
    rows: 'u32',
    columns: 'u32',

    /**
     * `quads`: groups of four elements in a row of factors. `slabs`: groups of eight features that contain
     * at least one feature.
     */
    quads: 'u32',
    slabs: 'u32',

    /** The first listed entry, which has its threshold at index 0, its count and ties at 0 and 1. */
    first: 'u32',
    depth: 'i32',
  },
  values: () => ({ THREADS, ROWS: THREADS, COLUMNS, COUNTS, REFRESH }),
  workgroup: () => ({ threads: THREADS, bytes: 32 * (THREADS + COLUMNS) + 12 * THREADS + 4 * COUNTS + 4 }),
});
