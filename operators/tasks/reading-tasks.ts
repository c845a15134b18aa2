/** The tasks that read ratings and number their ids: part of the contract of tasks.ts. */
import type { KeysSummary } from '../../engine/keys/number-keys.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import type { SourceSplit, SplitEnd } from '../../engine/stream/split.ts';
import type { ExchangeParams } from '../exchange/exchange.ts';
import type { BadRows } from '../ratings/rows/bad-rows.ts';
import type { PortableOperator } from '../../engine/stream/operator.ts';
import type { None, Numbered, Rows } from './task-types.ts';

/** The ids of a chunk of rows. */
export type ChunkSummary = {
  readonly rows: number;
  readonly users: KeysSummary;
  readonly items: KeysSummary;
};

export type ReadParams = {
  /** Read one after the other. */
  readonly splits: readonly SourceSplit[];
  /** From the source's side to the last, which selects ratings. */
  readonly operators: readonly PortableOperator[];
  readonly takesFaults: boolean;
  /** Most ratings; more are a CapacityError. */
  readonly maximumRows: number;
  /** The part of `room` that is this task's. */
  readonly room?: { readonly from: number; readonly to: number };
};

export type ReadValues = {
  readonly chunks: readonly ChunkSummary[];
  readonly bad: BadRows;
  /** Rows of the splits, before operators left some out. */
  readonly rows: number;
  /** The end of the last split, where it is a range of bytes. */
  readonly end: SplitEnd | null;
};

export type ReadRowsParams = {
  /** Read one after the other; none where the rows come from an exchange. */
  readonly splits: readonly SourceSplit[];
  /** From the source's side to the last. */
  readonly operators: readonly PortableOperator[];
  readonly takesFaults: boolean;
  /** Most bytes of the rows in memory. */
  readonly maximumBytes: number;
  /** Of each part of an exchange that is read in place of splits: the piece of its partition. */
  readonly parts: readonly number[];
  /** The same of the other side of each join among the operators; the name of one that several tasks take. */
  readonly others: readonly { readonly parts: readonly number[]; readonly name?: string }[];
  /** Present where the rows are divided among the parts of an exchange. */
  readonly exchange?: ExchangeParams;
};

export type ReadRowsValues = {
  /** Rows of the splits, before operators left some out. */
  readonly rows: number;
  /** As of read-ratings. */
  readonly end: SplitEnd | null;
  /** False where there are more bytes than may be: then none are given. */
  readonly complete: boolean;
  /** Of each batch. */
  readonly origins: readonly {
    readonly file?: string;
    readonly rowGroup?: number;
    readonly firstRow: number;
    /** Number of the batch's rows in `kept`, where rows of the origin were left out. */
    readonly kept?: number;
  }[];
  /**
   * Rows that were divided among the parts of an exchange, the bytes of each part, the first part of each
   * output.
   */
  readonly divided?: {
    readonly rows: number;
    readonly bytes: readonly number[];
    readonly firsts: readonly number[];
  };
};

/** The distance of codes from ids, where they are near. `wide`: the ids are among int64 ones. */
export type NearSide = { readonly least: number; readonly wide: boolean };

/**
 * Ids become positions in three steps. Chunks of rows are numbered separately, while others are read (see
 * NumberedKeys). Then their ids are counted together: ids in a narrow range in a table of the range, others
 * in hash tables, each with a share of the ids. Finally all chunks get maps from their codes to positions.
 */
export interface ReadingTasks {
  /**
   * Reads splits of a source into chunks of numbered ratings (see chunkLimits). Input: `schema` (`bytes`: the
   * columns of the splits, as an Arrow stream without rows). Outputs of chunk i: `codes.i`, `users.i`,
   * `items.i` as from number-keys, `values.i` (`values` Float32[rows] and, where they were selected,
   * `timestamps` Float64[rows]); outputs of chunks that are not made are left out. With an output `room`,
   * already allocated (see PairRoom), codes and values are views of the task's part of it.
   */
  'read-ratings': {
    inputs: { schema: PartitionRef };
    outputs: Numbered<'codes' | 'values' | 'users' | 'items'> & { readonly room?: PartitionRef };
    params: ReadParams;
    values: ReadValues;
  };

  /**
   * Reads splits of a source, or rows of an exchange, and runs operators over them. Inputs: `schema`, as for
   * read-ratings; `parts.i`: parts of an exchange, one after the other; `others.i`: parts of the other sides
   * of joins, each after its columns as for `schema`; `bounds`: of an exchange by ranges (`bytes`). Output:
   * `rows` (`bytes`: the batches as an Arrow stream; `kept` Uint32: see the origins), or, of an exchange,
   * `divided.i` (`bytes`: a stream for each part in it, a piece each); those that are not needed are left
   * out.
   */
  'read-rows': {
    inputs: { schema: PartitionRef; bounds?: PartitionRef } & Numbered<'parts' | 'others'>;
    outputs: { readonly rows?: PartitionRef } & Numbered<'divided'>;
    params: ReadRowsParams;
    values: ReadRowsValues;
  };

  /**
   * Turns external ids into codes of one chunk of rows (see NumberedKeys). Input: `ids` (layout key-pairs:
   * the key arrays of users, prefix "user", and of items, prefix "item"). Outputs: `codes` (`users`
   * Uint32[rows], `items` Uint32[rows]), `users` and `items` (the keys).
   */
  'number-keys': {
    inputs: { ids: PartitionRef };
    outputs: { codes: PartitionRef; users: PartitionRef; items: PartitionRef };
    params: { readonly rows: number };
    values: ChunkSummary;
  };

  /**
   * Turns narrow-range codes of a side, or of both, into codes of distinct ids. Output: `recoded`, and the
   * keys of such a side.
   */
  'recode-ids': {
    inputs: { codes: PartitionRef };
    outputs: { recoded: PartitionRef; users?: PartitionRef; items?: PartitionRef };
    params: { readonly users: NearSide | null; readonly items: NearSide | null };
    values: { readonly users: KeysSummary | null; readonly items: KeysSummary | null };
  };

  /**
   * Counts narrow-range ids over all chunks. Inputs: `keys.i`, or `codes.i` where the keys of a chunk have no
   * counts. Output: `counts` (`counts` Int32), already allocated, of which this task fills [from, to).
   * `starts`: the code 0 of each chunk in `counts`.
   */
  'count-ids': {
    inputs: Numbered<'keys' | 'codes'>;
    outputs: { counts: PartitionRef };
    params: Rows & { readonly starts: readonly number[]; readonly side: 'users' | 'items' };
    values: None;
  };

  /**
   * Gives the ids that occur positions by their order. Outputs: `map` (`map` Uint32: the position by id -
   * least), `keys` (prefix "key", and `counts`).
   */
  'rank-ids': {
    inputs: { counts: PartitionRef };
    outputs: { map: PartitionRef; keys: PartitionRef };
    params: NearSide;
    values: { readonly size: number };
  };

  /**
   * Collects the distinct ids of all chunks whose hash belongs to one `share` among `shares`. Inputs:
   * `keys.i`. Outputs: `share` (the ids, ascending, prefix "key", and `counts`); `map.i` (`map` Uint32: by
   * code of chunk i), already allocated, in which this task sets the codes of such ids to place in the share
   * * shares + share.
   */
  'unite-ids': {
    inputs: Numbered<'keys'>;
    outputs: { share: PartitionRef } & Numbered<'map'>;
    params: { readonly share: number; readonly shares: number; readonly chunks: number };
    values: { readonly size: number; readonly textBytes: number };
  };

  /**
   * Merges shares. Inputs: `share.i`. Outputs, there already: `keys` (prefix "key", and `counts`), `places`
   * (`map` Uint32: the position by the number that unite-ids gives). This task does one of `parts` ranges of
   * ids.
   */
  'merge-ids': {
    inputs: Numbered<'share'>;
    outputs: { keys: PartitionRef; places: PartitionRef };
    params: { readonly shares: number; readonly part: number; readonly parts: number };
    values: None;
  };

  /**
   * Leaves out the pairs of a chunk whose user or item is unknown. Inputs: `codes`, `values` (`values`
   * Float32), `userMap` and `itemMap` (`map` Uint32: the position of each code, UNKNOWN_KEY for none).
   * Outputs: `known` (positions for codes), `ratings`.
   */
  'keep-known': {
    inputs: { codes: PartitionRef; values: PartitionRef; userMap: PartitionRef; itemMap: PartitionRef };
    outputs: { known: PartitionRef; ratings: PartitionRef };
    params: None;
    values: { readonly rows: number };
  };

  /**
   * The map of a chunk from codes to positions by way of another. Inputs: `first`, `second` (`map` Uint32).
   * Output: `map`.
   */
  'compose-maps': {
    inputs: { first: PartitionRef; second: PartitionRef };
    outputs: { map: PartitionRef };
    params: None;
    values: None;
  };
}

/** See `contracts`. */
export const readingContracts = {
  'read-ratings': {
    schema: 'read',
    room: 'write',
    'codes.*': 'write',
    'values.*': 'write',
    'users.*': 'write',
    'items.*': 'write',
  },
  'read-rows': {
    schema: 'read',
    'parts.*': 'read',
    'others.*': 'read',
    bounds: 'read',
    rows: 'write',
    'divided.*': 'write',
  },
  'number-keys': { ids: 'read', codes: 'write', users: 'write', items: 'write' },
  'recode-ids': { codes: 'read', recoded: 'write', users: 'write', items: 'write' },
  'count-ids': { 'keys.*': 'read', 'codes.*': 'read', counts: 'alone' },
  'rank-ids': { counts: 'read', map: 'write', keys: 'write' },
  'unite-ids': { 'keys.*': 'read', share: 'write', 'map.*': 'alone' },
  'merge-ids': { 'share.*': 'read', keys: 'alone', places: 'alone' },
  'keep-known': {
    codes: 'read',
    values: 'read',
    userMap: 'read',
    itemMap: 'read',
    known: 'write',
    ratings: 'write',
  },
  'compose-maps': { first: 'read', second: 'read', map: 'write' },
} as const;
