import { BARE, ESCAPED, FieldBlock, RecordProblem } from '../../connectors/lines/field-block.ts';
import { countFields, scanRecords } from '../../connectors/text/record-scanner.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import { problem, type RemoteFile } from '../remote-file.ts';
import { type ItemRow, itemRow, type NamesColumns, type NamesFile, type Value } from './names-file.ts';

/** The largest file that is read as a whole. */
const MOST_BYTES = 1 << 26;
const BLOCK_ROWS = 4096;

const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/;

/** Names in a CSV or TSV file, which is read when it is opened; its rows may be in any order. */
export class CsvNames implements NamesFile {
  readonly #rows: ReadonlyMap<string, readonly (string | undefined)[]>;
  readonly #columns: NamesColumns;
  /** For each attribute, true if all its values are numbers. */
  readonly #numeric: readonly boolean[];

  private constructor(rows: ReadonlyMap<string, readonly (string | undefined)[]>, columns: NamesColumns) {
    [this.#rows, this.#columns] = [rows, columns];
    this.#numeric = columns.attributes.map((_, k) => {
      for (const { [k + 1]: value } of rows.values())
        if (value !== undefined && !NUMBER.test(value)) return false;
      return true;
    });
  }

  static async open(remote: RemoteFile, columns: NamesColumns): Promise<CsvNames> {
    const { url, byteLength } = remote;
    if (byteLength > MOST_BYTES)
      throw problem(
        url,
        `a text file of ${byteLength} bytes is too large for a page, which reads at most ${MOST_BYTES}`,
        'Write the names as Arrow or Parquet, sorted by id',
      );
    // The scan writes a line end after the last byte.
    const bytes = new Uint8Array(byteLength + 1);
    bytes.set(new Uint8Array(await remote.slice(0)));
    const delimiter = /\.tsv$/i.test(new URL(url).pathname) ? '\t' : ',';
    try {
      return new CsvNames(readRows(bytes, delimiter, columns, url), columns);
    } catch (error) {
      if (!(error instanceof RecordProblem)) throw error;
      throw problem(url, `byte ${error.position}: ${error.message}`, 'Correct the line', error);
    }
  }

  get size(): number {
    return this.#rows.size;
  }

  async find(ids: readonly Id[]): Promise<readonly (ItemRow | undefined)[]> {
    return ids.map((id) => {
      const row = this.#rows.get(String(id));
      if (row === undefined) return undefined;
      const [name, ...values] = row;
      const typed = values.map((value, k): Value | undefined =>
        value !== undefined && this.#numeric[k] ? Number(value) : value,
      );
      return itemRow(id, [name, ...typed], this.#columns);
    });
  }
}

/** The name and attributes of each id; the first row of an id counts. */
function readRows(
  bytes: Uint8Array<ArrayBuffer>,
  delimiter: string,
  { id, name, attributes }: NamesColumns,
  url: string,
): ReadonlyMap<string, readonly (string | undefined)[]> {
  const dialect = { delimiter, quotes: true };
  const to = bytes.length - 1;
  const from = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  const bounds = { to, limit: to, atEnd: true };
  const columns = countFields(bytes, from, to, dialect);
  const head = new FieldBlock(columns, 1);
  let at = scanRecords(head, bytes, from, bounds, dialect);
  const names = Array.from({ length: head.rows * columns }, (_, field) => textOf(head, field) ?? '');
  const places = [id, name, ...attributes].map((column) => {
    const place = names.indexOf(column);
    if (place < 0) throw problem(url, `the file has no column ${column}`);
    return place;
  });
  const rows = new Map<string, readonly (string | undefined)[]>();
  const block = new FieldBlock(columns, BLOCK_ROWS);
  for (let row = 1; at < to; row += block.rows) {
    at = scanRecords(block, bytes, at, bounds, dialect);
    for (let own = 0; own < block.rows; own++) {
      const [key, ...values] = places.map((place) => textOf(block, own * columns + place));
      if (key === undefined) throw problem(url, `row ${row + own} has no ${id}`);
      if (!rows.has(key)) rows.set(key, values);
    }
    if (block.rows === 0) break;
  }
  return rows;
}

/** The text of a field; undefined for a field that is empty and has no quotes. */
function textOf({ bytes, starts, ends, kinds }: FieldBlock, field: number): string | undefined {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    bytes.subarray(starts[field], ends[field]),
  );
  if (kinds[field] === BARE && text === '') return undefined;
  return kinds[field] === ESCAPED ? text.replaceAll('""', '"') : text;
}
