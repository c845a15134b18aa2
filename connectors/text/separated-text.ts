import { DataType } from 'apache-arrow';
import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatches, plainSchema } from '../files/plain-columns.ts';
import { LONGEST_ROW } from '../lines/field-block.ts';
import type { LineEncoder } from '../output/encode-rows.ts';
import type { TextDialect } from './dialect.ts';
import { columnTexts } from './format-value.ts';
import { areRows } from './tab-quotes.ts';

/** First characters of a cell that a spreadsheet takes for a formula. */
const formula = /^[=+\-@\t\r]/;

/**
 * Encodes batches as lines that TextSource reads back as the same values, unless the dialect escapes
 * formulas. Null is an empty field, "" an empty text.
 */
export class SeparatedText implements LineEncoder {
  readonly #names: readonly string[];
  readonly #texts: readonly ReturnType<typeof columnTexts>[];
  readonly #dialect: TextDialect;
  readonly #file: string;
  /** Characters that need quotes. */
  readonly #special: RegExp;
  #row = 0;

  /** Throws UsageError for columns that text cannot hold. */
  constructor(schema: Schema, dialect: TextDialect, file: string) {
    const { fields } = plainSchema(schema);
    this.#names = fields.map(({ name }) => name);
    this.#dialect = dialect;
    this.#file = file;
    const first = dialect.delimiter[0].replace(/[\\\]^-]/, '\\$&');
    this.#special = new RegExp(`[${first}"\\r\\n\\ufeff]`);
    this.#texts = fields.map(({ name, type }) => columnTexts(type, name));
  }

  /** The line of the columns' names. */
  header(): Uint8Array {
    const line = this.#names.map((name) => this.#field(name, name)).join(this.#dialect.delimiter);
    // Such a line is a delimiter for Excel and for TextSource.
    return Buffer.from(/^sep=.$/i.test(line) ? `"${line}"\n` : `${line}\n`);
  }

  lines(batch: RecordBatch, firstRow: number): Uint8Array {
    this.#row = firstRow;
    const { delimiter } = this.#dialect;
    const lines: string[] = [];
    for (const plain of plainBatches(batch)) {
      const cells = plain.data.children.map((data, column) => this.#cellsOf(data, column));
      for (let row = 0; row < plain.numRows; row++, this.#row++) {
        let line = '';
        for (let column = 0; column < cells.length; column++) {
          if (column > 0) line += delimiter;
          line += cells[column](row);
        }
        if (line.length * 3 > LONGEST_ROW && Buffer.byteLength(line) > LONGEST_ROW)
          throw this.#problem(
            `the row is longer than ${LONGEST_ROW} bytes, the longest that TextSource reads`,
          );
        if (delimiter === '\t' && line.includes('\n') && areRows(Buffer.from(line), cells.length))
          throw this.#problem('the lines of a text with line ends look like rows of their own');
        lines.push(line);
      }
    }
    return Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
  }

  /** The text of a column's field by row. */
  #cellsOf(data: Data, column: number): (row: number) => string {
    const text = this.#texts[column](data);
    const isText = DataType.isUtf8(data.type);
    return (row) => {
      if (data.nullCount > 0 && !data.getValid(row)) return '';
      if (isText) return this.#field(text(row), this.#names[column]);
      try {
        return text(row);
      } catch (error) {
        throw this.#problem(`the value cannot be written as text: ${messageOf(error)}`, this.#names[column]);
      }
    };
  }

  #field(value: string, column: string): string {
    const { delimiter, quotes, escapeFormulas } = this.#dialect;
    const text = escapeFormulas && formula.test(value) ? `'${value}` : value;
    if (quotes) return text === '' || this.#special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    if (/[\r\n]/.test(text) || `${text}${delimiter}`.indexOf(delimiter) !== text.length) {
      throw this.#problem(
        `a text holds a line end or the delimiter, and fields between ${JSON.stringify(delimiter)} cannot be quoted`,
        column,
      );
    }
    return text;
  }

  #problem(summary: string, column?: string): DataError {
    return new DataError(summary, {
      phase: 'write',
      file: this.#file,
      row: this.#row,
      column,
      advice: 'Write CSV, Parquet or Arrow instead',
    });
  }
}
