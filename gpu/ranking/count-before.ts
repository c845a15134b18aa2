import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows, and computes 8 x 8 scores per
 * thread.
 */
const THREADS = 128;
const COLUMNS = 64;
/** Most listed columns of a workgroup that are counted in its memory. */
const COUNTS = 1792;

/** Tiles between two checks of the counts. */
const REFRESH = 4;

/** Rows of one workgroup. */
export const COUNT_BEFORE_ROWS = THREADS;

/**
 * Counts, for each listed column, the columns that are ranked before it, for `rows` rows that list columns;
 * see the kernel's text. The result does not depend on the order of threads.
 */
export const countBeforeKernel = kernelOf<Record<never, never>>()({
  name: 'count-before',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      rows: 'array<u32>',
      offsets: 'array<i32>',
      listed: 'array<u32>',
      thresholds: 'array<vec2f>',
    }),
    ...writes({ counts: 'array<atomic<u32>>' }),
  ],
  uniforms: {
    /** `from_row`: index in `rows` of the first row. `count`: the number of rows from there. */
    from_row: 'u32',
    rows: 'u32',
    columns: 'u32',

    /**
     * `quads`: groups of four elements in a row of factors. `slabs`: groups of eight features that contain
     * at least one feature.
     */
    quads: 'u32',
    slabs: 'u32',

    /** Index in `listed` that corresponds to index 0 of thresholds and counts. */
    first: 'u32',
    depth: 'i32',
  },
  needs: () => [],
  values: () => ({ THREADS, ROWS: THREADS, COLUMNS, COUNTS, REFRESH }),
  workgroup: () => ({ threads: THREADS, bytes: 32 * (THREADS + COLUMNS) + 12 * THREADS + 4 * COUNTS + 4 }),
  samples: [{}],
});
