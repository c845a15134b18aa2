import { LONGEST_ROW } from '../lines/field-block.ts';
import { BARE, RecordProblem } from '../lines/field-block.ts';
import type { FieldBlock, ScanBounds } from '../lines/field-block.ts';
import { JsonCursor, JsonProblem } from './json-cursor.ts';

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
