import type { Id } from '../../engine/keys/find-id.ts';
import { ArrowFile } from '../arrow/arrow-file.ts';
import { readValues, requireValues, validRows } from '../arrow/arrow-values.ts';
import type { CachedFile } from '../cached-file.ts';
import { cancelledBy, type RemoteFile } from '../remote-file.ts';
import {
  askedAs,
  cachedNames,
  checkedId,
  compared,
  type ItemRow,
  itemRow,
  type NamesColumns,
  type NamesFile,
  notAscending,
  plainValue,
  type Value,
} from './names-file.ts';

/** Names in an Arrow file whose rows ascend by id: each id is found by binary search. */
export class ArrowNames implements NamesFile {
  readonly #cached: CachedFile;
  readonly #file: ArrowFile;
  readonly #columns: NamesColumns;

  private constructor(cached: CachedFile, file: ArrowFile, columns: NamesColumns) {
    [this.#cached, this.#file, this.#columns] = [cached, file, columns];
  }

  static async open(remote: RemoteFile, columns: NamesColumns): Promise<ArrowNames> {
    const cached = cachedNames(remote);
    const file = await ArrowFile.open(cached);
    for (const column of [columns.id, columns.name, ...columns.attributes]) file.field(column);
    for (const { batch } of file.pieces(0, file.rows)) requireValues(file, batch, file.field(columns.id));
    return new ArrowNames(cached, file, columns);
  }

  get size(): number {
    return this.#file.rows;
  }

  find(
    ids: readonly Id[],
    near: (id: Id) => number,
    signal: AbortSignal | undefined,
  ): Promise<readonly (ItemRow | undefined)[]> {
    const file = signal ? this.#file.through(cancelledBy(this.#cached, signal)) : this.#file;
    return Promise.all(
      ids.map(async (id) => {
        const row = await this.#find(file, id, near(id));
        if (row < 0) return undefined;
        const { name, attributes } = this.#columns;
        const values = await Promise.all([name, ...attributes].map((column) => valueAt(file, column, row)));
        return itemRow(id, values, this.#columns);
      }),
    );
  }

  /**
   * Position of an id by binary search, which begins at row `near`; -1 if the file does not have it. Throws
   * DataError where the ids that are read do not ascend.
   */
  async #find(file: ArrowFile, id: Id, near: number): Promise<number> {
    const { url } = file.file;
    let [low, high] = [0, this.size - 1];
    let [before, after]: [Value?, Value?] = [];
    for (let at = Math.max(0, Math.min(near, high)); low <= high; at = (low + high) >> 1) {
      const stored = checkedId((await valueAt(file, this.#columns.id, at)) as Value, at, url);
      const isBetween =
        (before === undefined || compared(before, stored) < 0) &&
        (after === undefined || compared(stored, after) < 0);
      if (!isBetween) throw notAscending(at, url);
      const asked = askedAs(id, stored);
      if (asked === undefined) return -1;
      const order = compared(stored, asked);
      if (order === 0) return at;
      if (order < 0) [low, before] = [at + 1, stored];
      else [high, after] = [at - 1, stored];
    }
    return -1;
  }
}

async function valueAt(file: ArrowFile, column: string, row: number): Promise<Value | undefined> {
  const field = file.field(column);
  const [piece] = file.pieces(row, row + 1);
  const [[value], [valid]] = await Promise.all([
    readValues(file, piece, field),
    validRows(file, piece, field),
  ]);
  if (!valid) return undefined;
  return value instanceof Uint8Array
    ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(value)
    : plainValue(value);
}
