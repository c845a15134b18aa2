/** Tasks that read rows and number the ids of ratings: a part of the contract of tasks.ts. */
import type { KeysSummary } from '../../engine/keys/tables/make-key-table.ts';
import type { PortableOperator } from '../../engine/stream/operator.ts';
import type { SourceSplit, SplitEnd } from '../../engine/stream/split.ts';
import type { ExchangeParams } from '../exchange/exchange.ts';
import type { BadRows } from '../ratings/rows/select-ratings.ts';
import { type Rows, type TaskTable, type } from './task-types.ts';

/** The kinds of ids in a chunk of rows, by side. */
export type ChunkSummary = {
  readonly rows: number;
  readonly users: KeysSummary;
  readonly items: KeysSummary;
};

type ReadSplits = {
  /** Read one after the other; empty if the rows come from an exchange. */
  readonly splits: readonly SourceSplit[];
  /** Operators on the rows, in order from the source; for ratings the last one selects their columns. */
  readonly operators: readonly PortableOperator[];
  readonly takesFaults: boolean;
};

export type ReadParams = ReadSplits & {
  /** If there are more ratings than this, the task throws CapacityError. */
  readonly maximumRows: number;
  /** The rows of the output `room` that this task fills. */
  readonly room?: { readonly from: number; readonly to: number };
};

export type ReadValues = {
  readonly chunks: readonly ChunkSummary[];
  readonly bad: BadRows;
  /** Number of rows in the splits, before operators removed some. */
  readonly rows: number;
  /** End of the last split, if it is a range of bytes. */
  readonly end: SplitEnd | null;
};

type InputPiece = readonly [input: number, piece: number];

export type ReadRowsParams = ReadSplits & {
  /** Most bytes of the rows in memory. */
  readonly maximumBytes: number;
  /**
   * If rows of an exchange are read instead of splits: for each part, the number i of the input `parts.i`, and
   * the index of the part's rows within it.
   */
  readonly parts: readonly InputPiece[];
  /**
   * For the second input of each join among the operators: the number of the input `others.i` with its columns,
   * and its parts among these inputs. `name`: given if several tasks read the same rows.
   */
  readonly others: readonly {
    readonly columns: number;
    readonly parts: readonly InputPiece[];
    readonly name?: string;
  }[];
  /** Present if the rows are divided among the parts of an exchange. */
  readonly exchange?: ExchangeParams;
};

export type ReadRowsValues = {
  /** Number of rows in the splits, before operators removed some. */
  readonly rows: number;
  /** As in read-ratings. */
  readonly end: SplitEnd | null;
  /** False if the rows exceed the maximum of bytes; then no rows are returned. */
  readonly complete: boolean;
  /** The position of each batch in the source. */
  readonly origins: readonly {
    readonly file?: string;
    readonly rowGroup?: number;
    readonly firstRow: number;
    /** If operators removed rows: the number of entries of the output `kept` that belong to this batch. */
    readonly kept?: number;
  }[];
  /**
   * If the rows were divided among the parts of an exchange: their number, the bytes of each part, and the
   * first part in each output `divided.i`.
   */
  readonly divided?: {
    readonly rows: number;
    readonly bytes: readonly number[];
    readonly firsts: readonly number[];
  };
};

/**
 * A side whose ids have a narrow range, so that codes are distances from the smallest id. `least`: the id
 * with code 0. `wide`: true if the ids are int64.
 */
export type NearSide = { readonly least: number; readonly wide: boolean };

/**
 * Ids become positions (0, 1, ... by ascending id) in three steps. First, the ids of each chunk of rows get
 * codes of that chunk, while others are read (see NumberedKeys). Then the ids of all chunks are counted
 * together: ids of a narrow range in one table of the range, others in hash tables, one for each share of the
 * ids. Finally each chunk gets a map from its codes to positions.
 */
export const readingTasks = {
  /**
   * Reads splits of a source into chunks of ratings whose ids have codes (see chunkLimits). Input: `schema`
   * (`bytes`: columns of the splits, as an Arrow stream without rows). Outputs for chunk i: `codes.i`,
   * `users.i`, `items.i` as from number-keys, `values.i` (`values` Float32[rows] and, if selected,
   * `timestamps` Float64[rows]); outputs of unused chunks are left out. With an output `room`, already
   * allocated (see PairRoom), codes and values are views of the task's part of it.
   */
  'read-ratings': {
    reads: ['schema'],
    writes: ['room?', 'codes.*?', 'values.*?', 'users.*?', 'items.*?'],
    params: type<ReadParams>(),
    values: type<ReadValues>(),
  },

  /**
   * Reads splits of a source, or rows of an exchange, and runs operators on them. Inputs: `schema`, as for
   * read-ratings; `parts.i`: parts of an exchange; `others.i`: parts of the second inputs of joins, and
   * their columns in the form of `schema`; `bounds`: for an exchange by
   * ranges (`bytes`). Output: `rows` (`bytes`: the batches as an Arrow stream; `kept` Uint32: see `origins`).
   * If the result is divided for an exchange, the outputs are instead `divided.i` (`bytes`: one Arrow stream
   * for each part in it). Unused outputs are left out.
   */
  'read-rows': {
    reads: ['schema', 'parts.*?', 'others.*?', 'bounds?'],
    writes: ['rows?', 'divided.*'],
    params: type<ReadRowsParams>(),
    values: type<ReadRowsValues>(),
  },

  /**
   * Turns external ids into codes within one chunk of rows (see NumberedKeys). Input: `ids` (layout
   * key-pairs: key arrays of users, prefix "user", and of items, prefix "item"). Outputs: `codes` (`users`
   * Uint32[rows], `items` Uint32[rows]), `users` and `items` (the keys).
   */
  'number-keys': {
    reads: ['ids'],
    writes: ['codes', 'users', 'items'],
    params: type<{ readonly rows: number }>(),
    values: type<ChunkSummary>(),
  },

  /**
   * Turns codes of ids with a narrow range (distances from the smallest id) into codes of distinct ids, for
   * one side or both. Output: `recoded`, and the keys of each such side.
   */
  'recode-ids': {
    reads: ['codes'],
    writes: ['recoded', 'users?', 'items?'],
    params: type<{ readonly users: NearSide | null; readonly items: NearSide | null }>(),
    values: type<{ readonly users: KeysSummary | null; readonly items: KeysSummary | null }>(),
  },

  /**
   * Counts ids of a narrow range over all chunks. Inputs: `keys.i`, or `codes.i` if the keys of a chunk have
   * no counts. Output: `counts` (`counts` Int32), already allocated; this task fills [from, to). `starts`:
   * position of each chunk's code 0 in `counts`.
   */
  'count-ids': {
    reads: ['keys.*', 'codes.*'],
    alone: ['counts'],
    params: type<Rows & { readonly starts: readonly number[]; readonly side: 'users' | 'items' }>(),
  },

  /**
   * Assigns positions, in ascending order, to the ids that occur at least once. Outputs: `map` (`map` Uint32:
   * the position of an id, at index id - least), `keys` (prefix "key", and `counts`).
   */
  'rank-ids': {
    reads: ['counts'],
    writes: ['map', 'keys'],
    params: type<NearSide>(),
    values: type<{ readonly size: number }>(),
  },

  /**
   * Collects the distinct ids of all chunks whose hash is in one `share` of `shares`. Inputs: `keys.i`.
   * Outputs: `share` (the ids, ascending, prefix "key", and `counts`); `map.i` (`map` Uint32: by code of
   * chunk i), already allocated, in which this task sets the codes of these ids to (index in the share) *
   * shares + share.
   */
  'unite-ids': {
    reads: ['keys.*'],
    writes: ['share'],
    alone: ['map.*'],
    params: type<{ readonly share: number; readonly shares: number; readonly chunks: number }>(),
    values: type<{ readonly size: number; readonly textBytes: number }>(),
  },

  /**
   * Merges the ids of all shares in ascending order. Inputs: `share.i`. Outputs, already allocated: `keys`
   * (prefix "key", and `counts`), `places` (`map` Uint32: position by the code from unite-ids). This task
   * handles one of `parts` ranges of ids.
   */
  'merge-ids': {
    reads: ['share.*'],
    alone: ['keys', 'places'],
    params: type<{ readonly shares: number; readonly part: number; readonly parts: number }>(),
  },

  /**
   * Removes the ratings of a chunk whose user or item is unknown, for example from a validation set. Inputs:
   * `codes`, `values` (`values` Float32), `userMap` and `itemMap` (`map` Uint32: the position of each code,
   * UNKNOWN_KEY for none). Outputs: `known` (positions as codes), `ratings`.
   */
  'keep-known': {
    reads: ['codes', 'values', 'userMap', 'itemMap'],
    writes: ['known', 'ratings'],
    values: type<{ readonly rows: number }>(),
  },

  /**
   * Composes two maps (`map` Uint32), for example from a chunk's codes to positions, and from these to other
   * positions: map[code] = second[first[code]]. Inputs: `first`, `second`. Output: `map`.
   */
  'compose-maps': { reads: ['first', 'second'], writes: ['map'] },
} as const satisfies TaskTable;
