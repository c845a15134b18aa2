import { type Data, DataType, type RecordBatch, type Schema, type Timestamp } from 'apache-arrow';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';
import { isUuid, type RowText, splitSeconds, valueTexts } from '../../engine/values/value-texts.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatches, plainSchema } from '../files/plain-columns.ts';
import { LONGEST_ROW } from '../lines/field-block.ts';
import type { Encoding } from '../formats.ts';
import type { TextDialect } from './dialect.ts';
import { areRows } from './record-scanner.ts';

/** Encodes batches as lines of text that the format's source reads back as the same values. */
abstract class LineEncoder {
  readonly #texts: readonly ReturnType<typeof columnTexts>[];
  readonly #file: string;
  #row = 0;
  protected readonly names: readonly string[];
  /** Name of the source that reads the lines. */
  protected abstract readonly reader: string;
  /** Text before each column's value, and at the end of a line. */
  protected abstract readonly before: readonly string[];
  protected abstract readonly end: string;
  protected abstract readonly nullText: string;

  /** Throws UsageError for columns that text cannot hold. */
  constructor(schema: Schema, file: string) {
    const { fields } = plainSchema(schema);
    this.#texts = fields.map(({ name, type }) => columnTexts(type, name));
    this.#file = file;
    this.names = fields.map(({ name }) => name);
  }

  /** Changes the text of a column's value; undefined where it stays as it is. */
  protected abstract format(type: DataType, column: string): ((text: string) => string) | undefined;

  /** Why a line cannot be read back. */
  protected faultOf?(line: string): string | undefined;

  /** `firstRow`: the number of the batch's first row in errors. */
  lines(batch: RecordBatch, firstRow: number): Uint8Array {
    this.#row = firstRow;
    const { before, end } = this;
    const lines: string[] = [];
    for (const plain of plainBatches(batch)) {
      const cells = plain.data.children.map((data, column) => this.#cellsOf(data, column));
      for (let row = 0; row < plain.numRows; row++, this.#row++) {
        let line = '';
        for (let column = 0; column < cells.length; column++) line += before[column] + cells[column](row);
        if (line.length * 3 > LONGEST_ROW && Buffer.byteLength(line) > LONGEST_ROW)
          throw this.problem(
            `the row is longer than ${LONGEST_ROW} bytes, the longest that ${this.reader} reads`,
          );
        const fault = this.faultOf?.(line);
        if (fault !== undefined) throw this.problem(fault);
        lines.push(line + end);
      }
    }
    return Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
  }

  /** The text of a column's value by row. */
  #cellsOf(data: Data, column: number): (row: number) => string {
    const { nullText } = this;
    const name = this.names[column];
    const text = this.#texts[column](data);
    const format = this.format(data.type, name);
    return (row) => {
      if (data.nullCount > 0 && !data.getValid(row)) return nullText;
      let value: string;
      try {
        value = text(row);
      } catch (error) {
        throw this.problem(`the value cannot be written as text: ${messageOf(error)}`, name);
      }
      return format === undefined ? value : format(value);
    };
  }

  protected problem(summary: string, column?: string): DataError {
    return new DataError(summary, {
      phase: 'write',
      file: this.#file,
      row: this.#row,
      column,
      advice: 'Write CSV, Parquet or Arrow instead',
    });
  }
}

/** First characters of a cell that a spreadsheet takes for a formula. */
const formula = /^[=+\-@\t\r]/;

/**
 * Lines of separated text; TextSource reads the same values unless the dialect escapes formulas. Null is an
 * empty field, "" an empty text.
 */
export class SeparatedText extends LineEncoder {
  protected readonly reader = 'TextSource';
  protected readonly before: readonly string[];
  protected readonly end = '';
  protected readonly nullText = '';
  readonly #dialect: TextDialect;
  /** Characters that need quotes. */
  readonly #special: RegExp;

  constructor(schema: Schema, dialect: TextDialect, file: string) {
    super(schema, file);
    this.#dialect = dialect;
    this.before = this.names.map((_, column) => (column === 0 ? '' : dialect.delimiter));
    const first = dialect.delimiter[0].replace(/[\\\]^-]/, '\\$&');
    this.#special = new RegExp(`[${first}"\\r\\n\\ufeff]`);
  }

  /** The line of the columns' names. */
  header(): Uint8Array {
    const line = this.names.map((name) => this.#field(name, name)).join(this.#dialect.delimiter);
    // Such a line is a delimiter for Excel and for TextSource.
    return Buffer.from(/^sep=.$/i.test(line) ? `"${line}"\n` : `${line}\n`);
  }

  protected format(type: DataType, column: string) {
    return DataType.isUtf8(type) ? (text: string) => this.#field(text, column) : undefined;
  }

  protected override faultOf(line: string): string | undefined {
    return this.#dialect.delimiter === '\t' &&
      line.includes('\n') &&
      areRows(Buffer.from(line), this.names.length)
      ? 'the lines of a text with line ends look like rows of their own'
      : undefined;
  }

  #field(value: string, column: string): string {
    const { delimiter, quotes, escapeFormulas } = this.#dialect;
    const text = escapeFormulas && formula.test(value) ? `'${value}` : value;
    if (quotes) return text === '' || this.#special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    if (/[\r\n]/.test(text) || `${text}${delimiter}`.indexOf(delimiter) !== text.length) {
      throw this.problem(
        `a text holds a line end or the delimiter, and fields between ${JSON.stringify(delimiter)} cannot be quoted`,
        column,
      );
    }
    return text;
  }
}

/**
 * Lines of JSON: 64-bit integers as numbers with all digits, floats with a point or an exponent. NaN and
 * infinities, which JSON lacks, become null.
 */
export class JsonLines extends LineEncoder {
  protected readonly reader = 'NdjsonSource';
  protected readonly before = this.names.map((name, i) => `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`);
  protected readonly end = '}';
  protected readonly nullText = 'null';

  protected format(type: DataType) {
    if (DataType.isFloat(type)) return (text: string) => (/[a-z]$/i.test(text) ? 'null' : text);
    return DataType.isInt(type) || DataType.isDecimal(type) || DataType.isBool(type)
      ? undefined
      : (text: string) => JSON.stringify(text);
  }
}

/** Encodes the rows of an Arrow IPC stream as lines of separated text (see Format). */
export function encodeText(stream: Uint8Array, encoding: Encoding, firstRow: number): Uint8Array {
  const { dialect, file } = encoding as Encoding & { readonly dialect: TextDialect & JsonObject };
  return encodeLines(stream, (schema) => new SeparatedText(schema, dialect, file), firstRow);
}

/** Encodes the rows of an Arrow IPC stream as lines of JSON (see Format). */
export function encodeJson(stream: Uint8Array, { file }: Encoding, firstRow: number): Uint8Array {
  return encodeLines(stream, (schema) => new JsonLines(schema, file), firstRow);
}

function encodeLines(
  stream: Uint8Array,
  encoderOf: (schema: Schema) => LineEncoder,
  firstRow: number,
): Uint8Array {
  let row = firstRow;
  const pieces: Uint8Array[] = [];
  for (const batch of openIpc(stream)) {
    pieces.push(encoderOf(batch.schema).lines(batch, row));
    row += batch.numRows;
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
}

/**
 * The texts of a column of that type, without quotes, chunk by chunk. Throws UsageError for types that one
 * field cannot hold.
 */
function columnTexts(type: DataType, column: string): (data: Data) => RowText {
  const { isUtf8, isInt, isFloat, isBool, isDecimal, isDate, isTimestamp, isTime } = DataType;
  const held = [isUtf8, isInt, isFloat, isBool, isDecimal, isDate, isTimestamp, isTime, isUuid];
  if (DataType.isNull(type)) return () => () => '';
  if (held.some((is) => is(type))) return valueTexts(type, { float: remembered(type), timestamp: isoText });
  throw new UsageError(`a text file cannot hold ${String(type)}`, {
    phase: 'write',
    column,
    advice: 'Write Parquet or Arrow instead',
  });
}

/** The shortest text that is this double, always with a point or an exponent, so that it stays a float. */
export function formatDouble(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text;
}

/** The shortest text that is this float32: 0.1, not 0.10000000149011612. */
export function formatSingle(value: number): string {
  if (!Number.isFinite(value) || String(value).length <= 7) return formatDouble(value);
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return formatDouble(short);
  }
  return formatDouble(Number(value.toPrecision(9)));
}

/** Formats floats and caches their texts, since ratings have few different values. */
function remembered(type: DataType): (value: number) => string {
  const format = DataType.isFloat(type) && type.precision === 2 ? formatDouble : formatSingle;
  const known = new Map<number, string>();
  return (number) => {
    // A Map treats -0 and 0 as the same key.
    if (number === 0) return format(number);
    let text = known.get(number);
    if (text === undefined) {
      text = format(number);
      if (known.size < 4096) known.set(number, text);
    }
    return text;
  };
}

/**
 * ISO 8601 with the digits of the unit: none, 3, 6 or 9; in UTC with a Z if the column has a time zone. Throws
 * RangeError for years that Date cannot hold.
 */
function isoText(count: bigint, { unit, timezone }: Timestamp): string {
  const { seconds, fraction } = splitSeconds(count, 3 * unit);
  const text = new Date(seconds * 1000).toISOString().slice(0, -5);
  return `${text}${fraction === '' ? '' : `.${fraction}`}${timezone ? 'Z' : ''}`;
}
