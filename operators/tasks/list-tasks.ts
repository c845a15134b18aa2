/**
 * Tasks of the search in lists, for large catalogues. Together with tasks.ts they are the contract between
 * operators and devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import { type TaskTable, type } from './task-types.ts';

/** Vectors θ_v in host memory: rows of `width` numbers, of which the first `rank` are used. */
export type VectorShape = {
  readonly width: number;
  readonly rank: number;
  /** Vectors are divided by their length; zeros stay zeros. */
  readonly normalized: boolean;
};

/**
 * Vectors in lists, in host memory. Columns are vectors, list by list, each list by falling distance from its
 * center; a list takes a multiple of four columns.
 */
export type ListParts = {
  /**
   * `values` Float32[(lists + 3) * rank]: the centers, then three rows with a number for each feature: 1 if
   * vectors differ in it, else 0; the mean of |d_k| / ‖d‖; and the variance of d_k / ‖d‖ if its sign is known
   * (d: a rotated difference, as in `codes`).
   */
  readonly centers: PartitionRef;
  /** `values` Uint32[lists + 1]: the first column of each list. */
  readonly starts: PartitionRef;
  /**
   * `values` Uint8[columns * width]: rotated differences from the center (cpu/tasks/lists/list-vectors.ts) as
   * signed bytes, padded to 16 bytes.
   */
  readonly codes: PartitionRef;
  /**
   * `values` Uint32[4 * columns]: lengths, remainders and scales (cpu/assembly/search.ts) as the bits of
   * float32 numbers, and the items, 0xffffffff in unused columns.
   */
  readonly guide: PartitionRef;
};

/** The same as matrices of a CPU device. */
export type ListMatrices = {
  readonly centerRows: PartitionRef;
  readonly radii: PartitionRef;
  readonly coarse: PartitionRef;
  readonly columnGuide: PartitionRef;
  /** Signs of `coarse`, in blocks of 16 columns: see cpu/assembly/lists.ts. */
  readonly signs: PartitionRef;
};

/** The data that a search in lists reads. */
export type SearchedLists = ListMatrices & {
  readonly starts: PartitionRef;
  /** Layout vectors: θ_v, for exact scores. */
  readonly vectors: PartitionRef;
  /** Layout item-mask: a 1 for each item that may be found. */
  readonly mask?: PartitionRef;
};

export type ListSearch = VectorShape & {
  readonly n: number;
  /** Number of lists that are searched; more if they have fewer items that may be found. */
  readonly probes: number;
  /** The largest ‖θ_v‖. */
  readonly longest: number;
  /** The margin by which signs leave out columns (cpu/tasks/lists/search-lists.ts); null: none are left out. */
  readonly margin: number | null;
  /** Lists of the whole index, of which a page has a part. If all are searched, the search is exact. */
  readonly wholeLists: number;
};

const matrices = ['centerRows', 'radii', 'coarse', 'columnGuide', 'signs'] as const;
const searched = [...matrices, 'starts', 'vectors', 'mask?'] as const;

export const listTasks = {
  /**
   * The nearest center of each vector of a range, by Σ w_k² (θ_k - c_k)², ties by lower list. Inputs:
   * `vectors`; `centers`, a matrix of [w c, -‖w c‖² / 2]; `weights` (`values` Float32[rank]: w); `rows`
   * (`values` Uint32: vectors to assign; default all). Output `lists` (`values` Uint32, in host memory): the
   * list of each.
   */
  'assign-lists': {
    reads: ['vectors', 'centers', 'weights', 'rows?'],
    writes: ['lists'],
    params: type<VectorShape & { readonly from: number; readonly to: number }>(),
  },

  /**
   * The mean of the vectors of each list of a range, summed in float64 in the order of `members` (`values`
   * Uint32: vectors list by list, of which list l has [offsets[l], offsets[l + 1])). Output `means` (`values`
   * Float32[lists * rank], in host memory); an empty list keeps its numbers.
   */
  'average-lists': {
    reads: ['vectors', 'members', 'offsets'],
    writes: ['means'],
    params: type<VectorShape & { readonly from: number; readonly to: number }>(),
  },

  /** Writes the lists of a range to ListParts. Values: `longest` = the largest ‖θ_v‖. */
  'encode-lists': {
    reads: ['vectors', 'members', 'offsets', 'starts', 'means'],
    writes: ['codes', 'guide'],
    params: type<VectorShape & { readonly from: number; readonly to: number }>(),
    values: type<{ readonly longest: number; readonly differs: readonly number[] }>(),
  },

  /** Copies lists to matrices that are allocated. */
  'load-lists': {
    reads: ['centers', 'starts', 'codes', 'guide'],
    writes: matrices,
  },

  /** Numbers of the first `probes` lists, in the order in which a search for the query probes them. */
  'rank-lists': {
    reads: searched,
    params: type<ListSearch & { readonly query: readonly number[] }>(),
    values: type<{ readonly lists: readonly number[] }>(),
  },

  /** The columns, ascending, of which a search for the query would compute the exact scores. */
  'list-candidates': {
    reads: searched,
    params: type<ListSearch & { readonly query: readonly number[]; readonly left: readonly number[] }>(),
    values: type<{ readonly columns: readonly number[] }>(),
  },

  /**
   * For each of `searches` the n items with the highest xᵀθ_v among the probed lists, best first, equal
   * scores by lower item; the scores are exact. If all lists are probed, the same bits as the results of
   * `search`. `left` and `allowed` as there; `allowed` items are compared without the lists.
   */
  'search-lists': {
    reads: searched,
    params: type<
      ListSearch & {
        readonly searches: readonly {
          readonly query: readonly number[];
          readonly left: readonly number[];
          readonly allowed?: readonly number[];
        }[];
      }
    >(),
    values: type<{
      readonly found: readonly { readonly items: readonly number[]; readonly scores: readonly number[] }[];
    }>(),
  },

  /**
   * The same for the rows [from, to) of `queries` (layout vectors, of `rank` numbers). `exclude`: a block of
   * pairs that are left out. Output `top`: layout top-n.
   */
  'top-n-in-lists': {
    reads: [...searched, 'queries', 'exclude?'],
    writes: ['top'],
    params: type<ListSearch & { readonly from: number; readonly to: number }>(),
  },
} as const satisfies TaskTable;
