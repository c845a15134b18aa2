import {
  BARE,
  ESCAPED_STRING,
  type FieldBlock,
  LITERAL,
  LONGEST_ROW,
  NESTED,
  RecordProblem,
  type ScanBounds,
  STRING,
} from '../lines/field-block.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [COMMA, COLON] = [0x2c, 0x3a];
const [OPEN, CLOSE] = [0x7b, 0x7d];
const [OPEN_LIST, CLOSE_LIST] = [0x5b, 0x5d];
const [DOT, ZERO] = [0x2e, 0x30];

/** A fault in the JSON of a line, with its own advice where it has one. */
export class JsonProblem extends Error {
  readonly advice: string | undefined;
  constructor(message: string, advice?: string) {
    super(message);
    this.advice = advice;
  }
}

/**
 * Iterates over the fields of one JSON object in a line, without creating values. Accepts NaN and Infinity,
 * which Python writes. Throws JsonProblem for a line that is not a complete object.
 */
export class JsonCursor {
  /** Bytes of the key, without its quotes. */
  keyStart = 0;
  keyEnd = 0;
  keyEscaped = false;
  /** Bytes of the value; a string's without its quotes. Empty for null. */
  start = 0;
  end = 0;
  kind = BARE;
  #bytes: Uint8Array = new Uint8Array(0);
  #p = 0;
  #to = 0;
  #first = true;

  /** Starts with the object in `bytes[from..to)`. */
  open(bytes: Uint8Array, from: number, to: number): void {
    this.#bytes = bytes;
    this.#p = from;
    this.#to = to;
    this.#first = true;
    if (this.#next() !== OPEN)
      throw new JsonProblem(
        bytes[this.#p - 1] === OPEN_LIST
          ? 'found a list instead of an object: NDJSON has one object on each line'
          : 'the line is not a JSON object',
      );
  }

  /** Moves to the next field. Returns false after the last one, where only spaces may follow. */
  next(): boolean {
    let byte = this.#next();
    if (byte === CLOSE) return this.#finish();
    if (!this.#first) {
      if (byte !== COMMA) throw this.#broken();
      byte = this.#next();
    }
    this.#first = false;
    if (byte !== QUOTE) throw this.#broken();
    this.keyStart = this.#p;
    this.keyEscaped = this.#string();
    this.keyEnd = this.#p - 1;
    if (this.keyEscaped) this.#checkString(this.keyStart);
    if (this.#next() !== COLON) throw this.#broken();
    this.#value();
    return true;
  }

  /** The key as text. */
  key(): string {
    const { keyStart, keyEnd } = this;
    const text = Buffer.from(
      this.#bytes.buffer,
      this.#bytes.byteOffset + keyStart - 1,
      keyEnd - keyStart + 2,
    ).toString('utf8');
    return this.keyEscaped ? (JSON.parse(text) as string) : text.slice(1, -1);
  }

  #finish(): false {
    if (this.#next() !== -1) throw new JsonProblem('something follows the JSON object');
    return false;
  }

  /** Consumes and returns the next byte that is not a space; -1 at the end. */
  #next(): number {
    while (this.#p < this.#to) {
      const byte = this.#bytes[this.#p++];
      if (byte > 0x20) return byte;
    }
    return -1;
  }

  #value(): void {
    const byte = this.#next();
    this.start = this.#p - 1;
    if (byte === QUOTE) {
      this.start++;
      this.kind = this.#string() ? ESCAPED_STRING : STRING;
      if (this.kind === ESCAPED_STRING) this.#checkString(this.start);
      this.end = this.#p - 1;
    } else if (byte === OPEN || byte === OPEN_LIST) {
      this.kind = NESTED;
      this.#skipNested();
      this.end = this.#p;
    } else if (byte === -1) throw this.#broken();
    else this.#word();
  }

  /** Skips a string, from after its opening quote to after its closing quote. True if it has escapes. */
  #string(): boolean {
    const bytes = this.#bytes;
    let escaped = false;
    for (let p = this.#p; p < this.#to; p++) {
      if (bytes[p] === BACKSLASH) {
        escaped = true;
        p++;
      } else if (bytes[p] === QUOTE) {
        this.#p = p + 1;
        return escaped;
      }
    }
    throw this.#broken();
  }

  /** Checks the escapes of the string from `start` (after its quote) to the current position. */
  #checkString(start: number): void {
    let text: string;
    try {
      text = JSON.parse(
        Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start - 1, this.#p - start + 1).toString(
          'utf8',
        ),
      ) as string;
    } catch {
      throw this.#broken();
    }
    // UTF-8 has no half surrogate pairs: all would become the same replacement character, and different ids
    // could become equal.
    if (!text.isWellFormed())
      throw new JsonProblem(
        'a text has half of a surrogate pair (\\ud800 to \\udfff), which UTF-8 does not hold',
      );
  }

  #skipNested(): void {
    let depth = 1;
    while (depth > 0) {
      const byte = this.#next();
      if (byte === -1) throw this.#broken();
      if (byte === QUOTE) this.#string();
      else if (byte === OPEN || byte === OPEN_LIST) depth++;
      else if (byte === CLOSE || byte === CLOSE_LIST) depth--;
    }
  }

  /** Skips a number, true, false or null. */
  #word(): void {
    const bytes = this.#bytes;
    let p = this.start;
    this.kind = BARE;
    // Fast path: most values are numbers without a sign, such as 5 and 3.5.
    if (bytes[p] > ZERO && bytes[p] <= ZERO + 9) {
      p = digitsEnd(bytes, p, this.#to);
      if (bytes[p] === DOT) p = Math.max(p, digitsEnd(bytes, p + 1, this.#to));
      if (bytes[p - 1] !== DOT && (bytes[p] === COMMA || bytes[p] === CLOSE) && p < this.#to) {
        this.#p = this.end = p;
        return;
      }
    }
    while (p < this.#to && bytes[p] > 0x20 && bytes[p] !== COMMA && bytes[p] !== CLOSE) p++;
    this.#p = this.end = p;
    this.#checkWord(
      Buffer.from(bytes.buffer, bytes.byteOffset + this.start, p - this.start).toString('latin1'),
    );
  }

  /** Finds the kind of a word; NaN and the infinities are accepted besides the words of JSON. */
  #checkWord(word: string): void {
    if (word === 'NaN' || word === 'Infinity' || word === '-Infinity') return;
    let value: unknown;
    try {
      value = JSON.parse(word);
    } catch {
      throw this.#broken();
    }
    if (value === null) this.end = this.start;
    else if (typeof value === 'boolean') this.kind = LITERAL;
  }

  #broken(): JsonProblem {
    return new JsonProblem('the line is not a complete JSON object');
  }
}

function digitsEnd(bytes: Uint8Array, from: number, end: number): number {
  let p = from;
  while (p < end && bytes[p] >= ZERO && bytes[p] <= ZERO + 9) p++;
  return p;
}

const LF = 0x0a;
/** Advice for a line that is not a JSON object. */
export const ADVICE = 'Correct the line: each one must be a whole JSON object';

/**
 * Position of the line end at or after `from`; `to` for the last line of a file without one; -1 if it is not
 * in memory yet.
 */
export function lineEnd(bytes: Uint8Array, from: number, to: number, atEnd: boolean): number {
  const lf = bytes.indexOf(LF, from);
  const end = lf < 0 || lf >= to ? to : lf;
  return end < to || atEnd ? end : -1;
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let p = from; p < to; p++) if (bytes[p] > 0x20) return false;
  return true;
}

/** Finds the columns of objects by their keys. */
export class ObjectScanner {
  readonly #columns: ReadonlyMap<string, number>;
  readonly #keys: readonly Uint8Array[];
  readonly #passesOthers: boolean;
  readonly #cursor = new JsonCursor();

  /** `passesOthers`: true to skip fields of other names; else they are errors. */
  constructor(names: readonly string[], passesOthers: boolean) {
    this.#columns = new Map(names.map((name, column) => [name, column]));
    this.#keys = names.map((name) => Buffer.from(name));
    this.#passesOthers = passesOthers;
  }

  /**
   * Finds the objects of complete lines in `bytes[from..to)` until the block is full. Returns the position of
   * the next line. Missing fields are empty, and blank lines are skipped. Throws RecordProblem for a line
   * that is not an object, unless the block collects faults.
   */
  readonly scan = (
    block: FieldBlock,
    bytes: Uint8Array,
    from: number,
    { to, limit, atEnd }: ScanBounds,
  ): number => {
    block.begin(bytes);
    let p = from;
    while (block.rows < block.maximumRows && p < to && p < limit) {
      const end = lineEnd(bytes, p, to, atEnd);
      if ((end < 0 ? to : end) - p > LONGEST_ROW)
        throw new RecordProblem(`the line is longer than ${LONGEST_ROW} bytes`, p, ADVICE);
      if (end < 0) break;
      if (!isBlank(bytes, p, end)) {
        const row = block.rows++;
        block.linesBefore[row] = block.lines;
        try {
          this.#object(block, row, bytes, p, end);
        } catch (error) {
          if (!(error instanceof JsonProblem)) throw error;
          if (block.faults === undefined) throw new RecordProblem(error.message, p, error.advice ?? ADVICE);
          block.refuse(row, error.message, p);
        }
      }
      block.lines++;
      p = Math.min(end + 1, to);
    }
    return p;
  };

  #object(block: FieldBlock, row: number, bytes: Uint8Array, from: number, to: number): void {
    const { columns, starts, ends, kinds } = block;
    const base = row * columns;
    const cursor = this.#cursor;
    starts.fill(from, base, base + columns);
    ends.fill(from, base, base + columns);
    kinds.fill(BARE, base, base + columns);
    cursor.open(bytes, from, to);
    let last = -1;
    while (cursor.next()) {
      // Most objects have their fields in the same order, so the next column is tried first.
      const column =
        last + 1 < columns && this.#isKey(bytes, last + 1) ? last + 1 : this.#columns.get(cursor.key());
      if (column === undefined) {
        if (this.#passesOthers) continue;
        throw new JsonProblem(
          `the field ${JSON.stringify(cursor.key())} is not among the fields of the first 4 MiB`,
          'Name the fields to read in the option columns',
        );
      }
      last = column;
      starts[base + column] = cursor.start;
      ends[base + column] = cursor.end;
      kinds[base + column] = cursor.kind;
    }
  }

  #isKey(bytes: Uint8Array, column: number): boolean {
    const key = this.#keys[column];
    const { keyStart, keyEnd, keyEscaped } = this.#cursor;
    if (keyEscaped || key.length !== keyEnd - keyStart) return false;
    for (let i = 0; i < key.length; i++) if (key[i] !== bytes[keyStart + i]) return false;
    return true;
  }
}
