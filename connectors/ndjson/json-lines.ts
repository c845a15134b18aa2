import { DataType } from 'apache-arrow';
import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatches, plainSchema } from '../files/plain-columns.ts';
import { LONGEST_ROW } from '../lines/field-block.ts';
import type { LineEncoder } from '../output/encode-rows.ts';
import { columnTexts } from '../text/format-value.ts';

/**
 * Encodes batches as lines of JSON that NdjsonSource reads back as the same values: 64-bit integers as
 * numbers with all digits, floats with a point or an exponent. NaN and infinities, which JSON lacks, become
 * null.
 */
export class JsonLines implements LineEncoder {
  readonly #keys: readonly string[];
  readonly #names: readonly string[];
  readonly #texts: readonly ReturnType<typeof columnTexts>[];
  readonly #file: string;
  #row = 0;

  /** Throws UsageError for columns of types that need nested JSON. */
  constructor(schema: Schema, file: string) {
    const { fields } = plainSchema(schema);
    this.#texts = fields.map(({ name, type }) => columnTexts(type, name));
    this.#names = fields.map(({ name }) => name);
    this.#keys = fields.map(({ name }, i) => `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
    this.#file = file;
  }

  lines(batch: RecordBatch, firstRow: number): Uint8Array {
    this.#row = firstRow;
    const lines: string[] = [];
    for (const plain of plainBatches(batch)) {
      const cells = plain.data.children.map((data, column) => this.#cellsOf(data, column));
      for (let row = 0; row < plain.numRows; row++, this.#row++) {
        let line = '';
        for (let column = 0; column < cells.length; column++) line += this.#keys[column] + cells[column](row);
        if (line.length * 3 > LONGEST_ROW && Buffer.byteLength(line) > LONGEST_ROW)
          throw this.#problem(
            `the row is longer than ${LONGEST_ROW} bytes, the longest that NdjsonSource reads`,
          );
        lines.push(`${line}}`);
      }
    }
    return Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
  }

  /** Returns the JSON of a column's value by row. */
  #cellsOf(data: Data, column: number): (row: number) => string {
    const text = this.#texts[column](data);
    const isBare =
      DataType.isInt(data.type) ||
      DataType.isFloat(data.type) ||
      DataType.isDecimal(data.type) ||
      DataType.isBool(data.type);
    const isFloat = DataType.isFloat(data.type);
    return (row) => {
      if (data.nullCount > 0 && !data.getValid(row)) return 'null';
      let value: string;
      try {
        value = text(row);
      } catch (error) {
        throw this.#problem(`the value cannot be written: ${messageOf(error)}`, this.#names[column]);
      }
      if (!isBare) return JSON.stringify(value);
      return isFloat && /[a-z]$/i.test(value) ? 'null' : value;
    };
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
