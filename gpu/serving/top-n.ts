import { kernelOf, reads, writes } from '../webgpu/kernel.ts';

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows. All threads together compute the
 * scores of a tile of these rows and COLUMNS columns, each thread 8 x 8 of them.
 */
const THREADS = 128;
const COLUMNS = 64;
/** Most scores that wait to be inserted in a row's list; a tile with more of them takes several rounds. */
const QUEUE = 4;

/** Rows of one workgroup. */
export const TOP_N_ROWS = THREADS;

export type TopNParams = {
  /**
   * True: columns that the row excludes (exclude_offsets and exclude_indices, as CSR) are left out. False:
   * these buffers are not read.
   */
  readonly excluding: boolean;
  /**
   * True: columns are sorted by descending norm, and `bounds` has the largest norm of each eight columns.
   * Since x.theta <= |x| |theta|, a workgroup stops when no later column can enter any of its lists. False:
   * `bounds` is not read.
   */
  readonly bounded: boolean;
  /**
   * True: column j of the sorted columns is item order[j]; lists contain items, and equal scores are ordered
   * by item. False: lists contain columns, and `order` is not read.
   */
  readonly ordered: boolean;
};

/**
 * The n columns with the highest scores x.theta for each of `rows` rows, from row from_row on; of equal
 * scores, the lower item is first. See the kernel's text for the layout of `lists`. The result depends
 * neither on the order of threads nor on how rows are cut into dispatches.
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

    /**
     * `quads`: groups of four elements in a row of factors. `slabs`: groups of eight features that contain at
     * least one feature.
     */
    quads: 'u32',
    slabs: 'u32',
    n: 'u32',

    /** The index of row from_row in `lists`. */
    list_row: 'u32',
    scores_at: 'u32',

    /** The row of the exclusions that belongs to row 0 of the factors. */
    exclude_row: 'u32',
  },
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
