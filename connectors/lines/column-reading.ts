/**
 * Functions that the readers of columns of all types use. They recognize nulls, missing fields, and fields
 * that are not values of the type.
 */
import { isMissing, isNaNText, latin1 } from './parse-numbers.ts';
import { NESTED } from './field-block.ts';
import type { FieldBlock } from './field-block.ts';

export const NESTED_VALUE = 'is an object or a list, which no column holds';
const NESTED_ADVICE = 'Name the other fields in the option columns, or take the value apart before';

/** A field that is not a value of its column's type. */
export class FieldProblem extends Error {
  readonly row: number;
  readonly column: number;
  /** Replaces the usual advice. */
  readonly advice: string | undefined;
  constructor(message: string, row: number, column: number, advice?: string) {
    super(message);
    this.advice = advice;
    this.row = row;
    this.column = column;
  }
}

/** Arrow's null bitmap, allocated at the first null. */
export class Nulls {
  count = 0;
  #bitmap: Uint8Array | undefined;
  readonly #rows: number;

  constructor(rows: number) {
    this.#rows = rows;
  }

  add(row: number): void {
    this.#bitmap ??= new Uint8Array(((this.#rows + 63) >> 6) << 3).fill(0xff);
    this.#bitmap[row >> 3] &= ~(1 << (row & 7));
    this.count++;
  }

  get parts(): { nullCount: number; nullBitmap?: Uint8Array } {
    return { nullCount: this.count, ...(this.#bitmap && { nullBitmap: this.#bitmap }) };
  }
}

/** Rules for turning fields into values. */
export interface ValueRules {
  /** True if a comma is the decimal separator. */
  readonly decimalComma: boolean;
  /**
   * Texts that mean null in columns of every type; undefined for the usual ones (NA, NULL, ...) in columns of
   * numbers.
   */
  readonly nulls: ReadonlySet<string> | undefined;
}

/** One column to read. */
export interface Reading extends ValueRules {
  readonly block: FieldBlock;
  readonly column: number;
  /**
   * True if whole numbers may have leading zeros. For an inferred type they may not, since 007 may be an id
   * other than 7.
   */
  readonly zeros: boolean;
  /** Called for a field that is not a value of the type. It throws, or the field becomes null. */
  readonly onFault: (problem: FieldProblem) => void;
}

/** True for a field without a value: empty, or one of the texts that mean null. */
export function isAbsent({ block, nulls }: Reading, start: number, end: number): boolean {
  return start === end || (nulls !== undefined && nulls.has(latin1(block.bytes, start, end)));
}

/**
 * Makes a field null whose text is not a value of its column's type, and reports it. A usual text for a
 * missing number, such as NA, is not reported.
 */
export function refuse(
  { block, column, nulls, onFault }: Reading,
  row: number,
  missing: Nulls,
  message: string,
): void {
  const field = row * block.columns + column;
  const [start, end] = [block.starts[field], block.ends[field]];
  if (block.kinds[field] === NESTED) onFault(new FieldProblem(NESTED_VALUE, row, column, NESTED_ADVICE));
  else if (
    !isNaNText(block.bytes, start, end) &&
    (nulls !== undefined || !isMissing(block.bytes, start, end))
  )
    onFault(new FieldProblem(message, row, column));
  missing.add(row);
}
