import { checkOptions } from '../api/check-options.ts';
import { UsageError } from '../engine/errors.ts';
import { type Id, isId, wholeOf } from '../engine/keys/find-id.ts';
import { shown } from '../engine/shown.ts';
import { ItemNames } from '../operators/serving/item-names.ts';
import { ArrowFile } from './arrow/arrow-file.ts';
import { readValues, requireValues, validRows } from './arrow/arrow-values.ts';
import { CachedFile } from './cached-file.ts';
import { addressOf } from './page-address.ts';
import { type Fetch, problem, RemoteFile } from './remote-file.ts';

export interface OpenNamesOptions {
  /** Columns of the file. Defaults: `id` and `name`, and no attributes. */
  readonly id?: string;
  readonly name?: string;
  readonly attributes?: readonly string[];
  /** See OpenModelOptions. */
  readonly fetch?: Fetch;
  readonly signal?: AbortSignal;
}

/** A row of the names: `name` and attributes that are null are left out. */
export interface ItemRow {
  readonly id: Id;
  readonly name?: string;
  readonly attributes: Readonly<Record<string, number | bigint | string>>;
}

type Value = ItemRow['attributes'][string];

/**
 * Opens names and attributes of items on a web server: an Arrow IPC file whose rows ascend by id, without
 * compression. Only the rows that are asked for are read, by HTTP ranges. Throws DataError for a file that is
 * missing, damaged, compressed or without the columns; `rows` does so where it meets ids that do not ascend.
 */
export async function openNames(url: string | URL, options: OpenNamesOptions = {}): Promise<RemoteNames> {
  const known = ['id', 'name', 'attributes', 'fetch', 'signal'] as const;
  checkOptions('openNames', options, known, "{ id: 'item', name: 'title' }");
  const address = addressOf('openNames', url, "openNames('films.arrow')");
  const { id = 'id', name = 'name', attributes = [], signal } = options;
  const { fetch = (asked, init) => globalThis.fetch(asked, init) } = options;
  const file = await RemoteFile.open(address, { fetch, signal });
  if (file === undefined) throw problem(address, 'there is no file at this URL');
  const arrow = await ArrowFile.open(new CachedFile(file));
  for (const column of [id, name, ...attributes]) arrow.field(column);
  for (const { batch } of arrow.pieces(0, arrow.rows)) requireValues(arrow, batch, arrow.field(id));
  return new RemoteNames(arrow, { id, name, attributes });
}

/** Names and attributes of items in a file on a web server, of which rows are read as they are asked for. */
export class RemoteNames {
  readonly #file: ArrowFile;
  readonly #columns: Required<Pick<OpenNamesOptions, 'id' | 'name' | 'attributes'>>;

  /** @internal */
  constructor(file: ArrowFile, columns: Required<Pick<OpenNamesOptions, 'id' | 'name' | 'attributes'>>) {
    [this.#file, this.#columns] = [file, columns];
  }

  /** Number of rows. */
  get size(): number {
    return this.#file.rows;
  }

  /** The rows of these ids, in their order, without ids that the file does not have. */
  async rows(ids: readonly Id[]): Promise<ItemRow[]> {
    return this.near(ids, () => this.size >> 1);
  }

  /** The same; `near` gives a row at or near which an id probably is. @internal */
  async near(ids: readonly Id[], near: (id: Id) => number): Promise<ItemRow[]> {
    if (!Array.isArray(ids) || !ids.every((id) => isId(id)))
      throw new UsageError(`rows takes a list of ids, got ${shown(ids)}`);
    const found = await Promise.all(ids.map((id: Id) => this.#row(id, near(id))));
    return found.filter((row) => row !== undefined);
  }

  /** @internal */
  async names(ids: readonly Id[], near: (id: Id) => number): Promise<ItemNames> {
    const found = await this.near(ids, near);
    return new ItemNames(found.map(({ id, name }) => [id, name]));
  }

  async #row(id: Id, near: number): Promise<ItemRow | undefined> {
    const at = await this.#find(id, near);
    if (at < 0) return undefined;
    const { name: called, attributes: columns } = this.#columns;
    const [name, ...values] = await Promise.all(
      [called, ...columns].map((column) => this.#value(column, at)),
    );
    const known = columns.flatMap((column, k) => {
      const value = values[k];
      return value === undefined ? [] : [[column, value] as const];
    });
    const attributes = Object.fromEntries(known);
    return { id, ...(name !== undefined && { name: String(name) }), attributes };
  }

  /**
   * Position of an id by binary search, which begins at row `near`; -1 if the file does not have it. Throws
   * DataError where the ids that are read do not ascend: an id could be missed otherwise.
   */
  async #find(id: Id, near: number): Promise<number> {
    let [low, high] = [0, this.size - 1];
    let [before, after]: [Value?, Value?] = [];
    for (let at = Math.max(0, Math.min(near, high)); low <= high; at = (low + high) >> 1) {
      const stored = await this.#id(at);
      const isBetween =
        (before === undefined || compared(before, stored) < 0) &&
        (after === undefined || compared(stored, after) < 0);
      if (!isBetween)
        throw problem(this.#file.file.url, `the ids do not ascend at row ${at + 1}`, 'Sort the rows by id');
      const asked = typeof stored === 'string' ? String(id) : wholeOf(id);
      if (asked === undefined) return -1;
      const order = compared(stored, asked);
      if (order === 0) return at;
      if (order < 0) [low, before] = [at + 1, stored];
      else [high, after] = [at - 1, stored];
    }
    return -1;
  }

  async #id(row: number): Promise<Value> {
    const id = (await this.#value(this.#columns.id, row)) as Value;
    if (typeof id === 'number' && !Number.isInteger(id))
      throw problem(this.#file.file.url, `the id of row ${row + 1} is ${id}`, 'Use whole numbers or texts');
    return id;
  }

  async #value(column: string, row: number): Promise<Value | undefined> {
    const field = this.#file.field(column);
    const [piece] = this.#file.pieces(row, row + 1);
    const [[value], [valid]] = await Promise.all([
      readValues(this.#file, piece, field),
      validRows(this.#file, piece, field),
    ]);
    if (!valid) return undefined;
    if (value instanceof Uint8Array) return new TextDecoder().decode(value);
    return typeof value === 'bigint' && BigInt(Number(value)) === value && Number.isSafeInteger(Number(value))
      ? Number(value)
      : (value as Value);
  }
}

/** Below, equal to or above 0 as one value is before, at or after another: texts by their UTF-8 bytes. */
function compared(one: Value, other: Value): number {
  if (typeof one !== 'string' || typeof other !== 'string') return one < other ? -1 : one > other ? 1 : 0;
  const [left, right] = [Array.from(one), Array.from(other)];
  const at = left.findIndex((point, k) => point !== right[k]);
  if (at < 0) return left.length - right.length;
  if (right[at] === undefined) return 1;
  return (left[at].codePointAt(0) as number) - (right[at].codePointAt(0) as number);
}
