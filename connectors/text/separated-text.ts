import { DataType, Vector } from 'apache-arrow';
import type { Data, RecordBatch, Schema, Utf8 } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatch, plainSchema } from '../files/plain-columns.ts';
import type { BatchEncoder } from '../output/write-batches.ts';
import { LONGEST_ROW } from './dialect.ts';
import type { TextDialect } from './dialect.ts';
import { valueFormat } from './format-value.ts';
import type { ValueFormat } from './format-value.ts';

/** Encodes batches as lines that TextSource reads back as the same values. Null is an empty field, "" an empty text. */
export class SeparatedText implements BatchEncoder {
  readonly #names: readonly string[];
  readonly #formats: readonly ValueFormat[];
  readonly #dialect: TextDialect;
  readonly #header: boolean;
  readonly #file: string;
  /** Characters that need quotes. */
  readonly #special: RegExp;
  #rows = 0;

  /** Throws UsageError for columns that text cannot hold. */
  constructor(schema: Schema, dialect: TextDialect, header: boolean, file: string) {
    const { fields } = plainSchema(schema);
    this.#names = fields.map(({ name }) => name);
    this.#dialect = dialect;
    this.#header = header;
    this.#file = file;
    const first = dialect.delimiter[0].replace(/[\\\]^-]/, '\\$&');
    this.#special = new RegExp(`[${first}"\\r\\n\\ufeff]`);
    this.#formats = fields.map(({ name, type }) => valueFormat(type, name));
  }

  begin(): Uint8Array {
    return Buffer.from(this.#header ? `${this.#names.map((name) => this.#field(name, name)).join(this.#dialect.delimiter)}\n` : '');
  }

  batch(batch: RecordBatch): Uint8Array {
    const plain = plainBatch(batch);
    const { delimiter } = this.#dialect;
    const cells = plain.data.children.map((data, column) => this.#cellsOf(data, column));
    const lines: string[] = [];
    for (let row = 0; row < plain.numRows; row++, this.#rows++) {
      let line = '';
      for (let column = 0; column < cells.length; column++) {
        if (column > 0) line += delimiter;
        line += cells[column](row);
      }
      if (line.length * 3 > LONGEST_ROW && Buffer.byteLength(line) > LONGEST_ROW) throw this.#problem(`the row is longer than ${LONGEST_ROW} bytes, the longest that TextSource reads`);
      lines.push(line);
    }
    return Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
  }

  end(): Uint8Array {
    return new Uint8Array(0);
  }

  /** The text of a column's field by row. */
  #cellsOf(data: Data, column: number): (row: number) => string {
    const hasNulls = data.nullCount > 0;
    const isNull = (row: number) => hasNulls && !data.getValid(row);
    if (DataType.isUtf8(data.type)) {
      // Arrow's own decoder drops a byte order mark at the beginning of a text.
      const { values, valueOffsets } = data as Data<Utf8>;
      const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
      return (row) => (isNull(row) ? '' : this.#field(bytes.toString('utf8', valueOffsets[row], valueOffsets[row + 1]), this.#names[column]));
    }
    if (DataType.isInt(data.type)) {
      const values = data.values as Int32Array | BigInt64Array;
      return (row) => (isNull(row) ? '' : String(values[row]));
    }
    const format = this.#formats[column];
    const vector = new Vector([data]);
    const counts = DataType.isTimestamp(data.type) ? (data.values as unknown as BigInt64Array) : undefined;
    return (row) => {
      if (isNull(row)) return '';
      try {
        return format(counts === undefined ? vector.get(row) : counts[row]);
      } catch (error) {
        throw this.#problem(`the value cannot be written as text: ${messageOf(error)}`, this.#names[column]);
      }
    };
  }

  #field(text: string, column: string): string {
    const { delimiter, quotes } = this.#dialect;
    if (quotes) return text === '' || this.#special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    if (/[\r\n]/.test(text) || `${text}${delimiter}`.indexOf(delimiter) !== text.length) {
      throw this.#problem(`a text holds a line end or the delimiter, and fields between ${JSON.stringify(delimiter)} cannot be quoted`, column);
    }
    return text;
  }

  #problem(summary: string, column?: string): DataError {
    return new DataError(summary, { phase: 'write', file: this.#file, row: this.#rows, column, advice: 'Write CSV, Parquet or Arrow instead' });
  }
}
