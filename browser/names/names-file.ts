import { type Id, wholeOf } from '../../engine/keys/find-id.ts';
import { BlockCache, type CachedFile } from '../cached-file.ts';
import { problem, type RemoteFile } from '../remote-file.ts';

/** A row of the names: `name` and attributes that are null are left out. */
export interface ItemRow {
  readonly id: Id;
  readonly name?: string;
  readonly attributes: Readonly<Record<string, number | bigint | string>>;
}

export type Value = ItemRow['attributes'][string];

/** The columns of a file that are read. */
export interface NamesColumns {
  readonly id: string;
  readonly name: string;
  readonly attributes: readonly string[];
}

/** A file of names, of which rows are read as they are asked for. */
export interface NamesFile {
  /** Number of rows. */
  readonly size: number;
  /**
   * The row of each id; undefined for ids that the file does not have. `near`: a row at or near which an id
   * probably is.
   */
  find(
    ids: readonly Id[],
    near: (id: Id) => number,
    signal: AbortSignal | undefined,
  ): Promise<readonly (ItemRow | undefined)[]>;
}

/** Bytes of a block of a file of names: values near each other share a request. */
const BLOCK_BYTES = 1 << 14;

/** A file of names whose blocks stay in memory. */
export function cachedNames(remote: RemoteFile): CachedFile {
  return new BlockCache(BLOCK_BYTES).open(remote);
}

/** The row of an id, from its name and attributes in the order of the columns; null where there is none. */
export function itemRow(
  id: Id,
  [name, ...values]: readonly (Value | null | undefined)[],
  { attributes: columns }: NamesColumns,
): ItemRow {
  const known = columns.flatMap((column, k) => {
    const value = values[k];
    return value === undefined || value === null ? [] : [[column, value] as const];
  });
  const attributes = Object.fromEntries(known);
  return { id, ...(name !== undefined && name !== null && { name: String(name) }), attributes };
}

/** A 64-bit integer as a number, if that is exact. */
export function plainValue(value: Value): Value {
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** An id as a file with ids such as `stored` has it. Undefined if it cannot have the id. */
export function askedAs(id: Id, stored: Value): Value | undefined {
  return typeof stored === 'string' ? String(id) : wholeOf(id);
}

/** Below, equal to or above 0 as one value is before, at or after another: texts by their UTF-8 bytes. */
export function compared(one: Value, other: Value): number {
  if (typeof one !== 'string' || typeof other !== 'string') return one < other ? -1 : one > other ? 1 : 0;
  const [left, right] = [Array.from(one), Array.from(other)];
  const at = left.findIndex((point, k) => point !== right[k]);
  if (at < 0) return left.length - right.length;
  if (right[at] === undefined) return 1;
  return (left[at].codePointAt(0) as number) - (right[at].codePointAt(0) as number);
}

/** The id in a row. Throws DataError for floats with a fraction. */
export function checkedId(value: Value, row: number, url: string): Value {
  if (typeof value === 'number' && !Number.isInteger(value))
    throw problem(url, `the id of row ${row + 1} is ${value}`, 'Use whole numbers or texts');
  return value;
}

/** The error for ids that do not ascend: an id could be missed. */
export function notAscending(row: number, url: string): Error {
  return problem(url, `the ids do not ascend at row ${row + 1}`, 'Sort the rows by id');
}
