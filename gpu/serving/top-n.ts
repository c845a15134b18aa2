import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows, and computes 8 x 8 scores per
 * thread.
 */
const THREADS = 128;
const COLUMNS = 64;
/** Candidates that a row's queue holds; a tile with more candidates takes several rounds. */
const QUEUE = 4;

/** Rows of one workgroup. */
export const TOP_N_ROWS = THREADS;

export type TopNParams = {
  /**
   * True: the columns in the row's part of `exclude_indices` are left out. False: the exclusions are not
   * read.
   */
  readonly excluding: boolean;
  /**
   * True: columns are in order of descending bound, so a workgroup stops once no row of it can improve.
   * False: `bounds` is not read.
   */
  readonly bounded: boolean;
  /**
   * True: lists contain the items of `order`, which also break ties. False: lists contain columns, and
   * `order` is not read.
   */
  readonly ordered: boolean;
};

/**
 * The n best columns of `rows` rows from from_row on, ties by lower item; see the kernel's text for `lists`.
 * The result depends neither on the order of threads nor on how rows are cut into dispatches.
 */
export const topNKernel = kernelOf<TopNParams>()({
  name: 'top-n',
  bindings: [
    ...reads({
      row_factors: 'array<vec4f>',
      column_factors: 'array<vec4f>',
      exclude_offsets: 'array<i32>',
      exclude_indices: 'array<u32>',
      bounds: 'array<f32>',
      order: 'array<u32>',
    }),
    ...writes({ lists: 'array<u32>' }),
  ],
  uniforms: {
    from_row: 'u32',
    rows: 'u32',
    columns: 'u32',

    /** Groups of four elements in a row of factors, and groups of eight that hold a feature. */
    quads: 'u32',
    slabs: 'u32',
    n: 'u32',

    /** The index of row from_row in `lists`. */
    list_row: 'u32',
    scores_at: 'u32',

    /** The row of the exclusions for row 0 of the factors. */
    exclude_row: 'u32',
  },
  needs: () => [],
  values: ({ excluding, bounded, ordered }) => ({
    THREADS,
    ROWS: THREADS,
    COLUMNS,
    QUEUE,
    EXCLUDING: excluding,
    BOUNDED: bounded,
    ORDERED: ordered,
  }),
  workgroup: () => ({
    threads: THREADS,
    bytes: 32 * (THREADS + COLUMNS) + 8 * QUEUE * THREADS + 12 * THREADS + 8,
  }),
  samples: [
    { excluding: true, bounded: true, ordered: true },
    { excluding: false, bounded: false, ordered: false },
  ],
});
