import { parquetScan } from 'hyparquet/src/scan.js';
import type { FileMetaData, ParquetScan } from 'hyparquet/src/types.js';
import { type Id, wholeOf } from '../../engine/keys/find-id.ts';
import type { CachedFile } from '../cached-file.ts';
import { damageAt } from '../read-side.ts';
import { readFooter, withPageSums } from '../parquet-bytes.ts';
import { cancelledBy, problem, type RemoteFile } from '../remote-file.ts';
import {
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

/** Rows with at most this number of rows between them are read together. */
const GAP_ROWS = 1 << 10;

type Range = ParquetScan['ranges'][number];

/** A row of the file that was asked for, and its id as text. */
interface Place {
  readonly row: number;
  readonly key: string;
}

/**
 * Names in a Parquet file whose rows ascend by id. Row groups and pages are left out by their least and
 * greatest ids, as far as the file has these; of the others the ids are read, and then the pages with the
 * rows that were found.
 */
export class ParquetNames implements NamesFile {
  readonly #cached: CachedFile;
  readonly #metadata: FileMetaData;
  readonly #columns: NamesColumns;

  private constructor(cached: CachedFile, metadata: FileMetaData, columns: NamesColumns) {
    [this.#cached, this.#metadata, this.#columns] = [cached, metadata, columns];
  }

  static async open(remote: RemoteFile, columns: NamesColumns): Promise<ParquetNames> {
    const metadata = await damageAt(remote.url, () => readFooter(remote));
    for (const column of [columns.id, columns.name, ...columns.attributes])
      checkColumn(metadata, column, remote.url);
    return new ParquetNames(cachedNames(remote), metadata, columns);
  }

  get size(): number {
    return Number(this.#metadata.num_rows);
  }

  async find(
    ids: readonly Id[],
    _near: (id: Id) => number,
    signal: AbortSignal | undefined,
  ): Promise<readonly (ItemRow | undefined)[]> {
    const cached = signal ? cancelledBy(this.#cached, signal) : this.#cached;
    const file = withPageSums(cached, this.#metadata);
    return damageAt(file.url, async () => {
      const [metadata, { id, name, attributes }] = [this.#metadata, this.#columns];
      const values = [name, ...attributes];
      const isText = metadata.schema.some((one) => one.name === id && one.type === 'BYTE_ARRAY');
      const asked = ids.flatMap((one) => (isText ? String(one) : wholeOf(one)) ?? []);
      if (asked.length === 0) return ids.map(() => undefined);
      const pruningFilter = { [id]: { $in: asked } };
      const all = { file, metadata, columns: [id, ...values], filterStrict: false };
      const scan = await parquetScan({ ...all, pruningFilter, usePageIndex: true });
      const keys = ids.map((one) => keyOf(one, isText));
      const places = await this.#placesIn(scan, isText, new Set(keys));
      const rows = new Map<string, readonly (Value | undefined)[]>();
      for (const near of together(places, scan.ranges)) await this.#read(scan, near, rows);
      return ids.map((one, k) => {
        const found = rows.get(keys[k]);
        return found && itemRow(one, found, this.#columns);
      });
    });
  }

  /** The rows of the ids in the ranges of a scan. Throws DataError where ids do not ascend. */
  async #placesIn(scan: ParquetScan, isText: boolean, keys: ReadonlySet<string>): Promise<Place[]> {
    const { url } = this.#cached;
    const places: Place[] = [];
    let last: Value | undefined;
    for (const range of scan.ranges) {
      const stored = await scan.readColumn({ column: this.#columns.id, ...range });
      for (let at = 0; at < stored.length; at++) {
        const row = range.rowStart + at;
        const value = checkedId(checkedValue(stored[at], this.#columns.id, url), row, url);
        if (last !== undefined && compared(last, value) >= 0) throw notAscending(row, url);
        last = value;
        const key = keyOf(value, isText);
        if (keys.has(key)) places.push({ row, key });
      }
    }
    return places;
  }

  /** Reads the names and attributes of rows near each other. */
  async #read(
    scan: ParquetScan,
    places: readonly Place[],
    rows: Map<string, readonly (Value | undefined)[]>,
  ): Promise<void> {
    const { name, attributes } = this.#columns;
    const [rowStart, rowEnd] = [places[0].row, (places.at(-1) as Place).row + 1];
    const columns = await Promise.all(
      [name, ...attributes].map((column) => scan.readColumn({ column, rowStart, rowEnd })),
    );
    for (const { row, key } of places) {
      const values = columns.map((column, k): Value | undefined => {
        const value: unknown = column[row - rowStart];
        if (value === null || value === undefined) return undefined;
        return plainValue(checkedValue(value, [name, ...attributes][k], this.#cached.url));
      });
      rows.set(key, values);
    }
  }
}

/** An id as text: 5, 5n and '5' are the same whole number. */
function keyOf(id: Id, isText: boolean): string {
  return isText ? String(id) : String(wholeOf(id) ?? '');
}

/** Places in groups that are read together: near each other, and in one range. */
function together(places: readonly Place[], ranges: readonly Range[]): Place[][] {
  const rangeOf = ({ row }: Place) => ranges.findIndex(({ rowEnd }) => row < rowEnd);
  const groups: Place[][] = [];
  for (const place of places) {
    const last = groups.at(-1)?.at(-1);
    if (last && place.row - last.row <= GAP_ROWS && rangeOf(last) === rangeOf(place))
      groups.at(-1)?.push(place);
    else groups.push([place]);
  }
  return groups;
}

function checkedValue(value: unknown, column: string, url: string): Value {
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'string') return value;
  if (value === null || value === undefined) throw problem(url, `the column ${column} has nulls`);
  throw problem(url, `the column ${column} has no numbers or texts`);
}

/** Throws DataError unless pages can read the column. */
function checkColumn({ schema, row_groups: groups }: FileMetaData, column: string, url: string): void {
  const depth = schema.findIndex(({ name }, at) => at > 0 && name === column);
  if (depth < 0) throw problem(url, `the file has no column ${column}`);
  for (const { columns } of groups)
    for (const { meta_data: chunk } of columns)
      if (chunk?.path_in_schema[0] === column && !['UNCOMPRESSED', 'SNAPPY'].includes(chunk.codec))
        throw problem(
          url,
          `the column ${column} is compressed by ${chunk.codec}, which pages do not read`,
          'Write the file with codec snappy or uncompressed',
        );
}
