import type { ValueRules } from '../lines/column-reading.ts';
import { LONGEST_ROW, RecordProblem } from '../lines/field-block.ts';
import { isSettled, kindOf } from '../lines/infer-types.ts';
import { MOST_COLUMNS } from '../lines/row-layout.ts';
import { JsonCursor, JsonProblem } from './json-cursor.ts';
import { ADVICE, lineEnd } from './scan-objects.ts';

/** The bytes `bytes[from..to)`, of which complete lines are read. */
export interface LinesOf {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
  readonly atEnd: boolean;
}

export interface InferredFields {
  readonly names: readonly string[];
  /** Kinds of values of each field (see kindsIn). */
  readonly kinds: readonly number[];
}

/**
 * The fields of all objects in order of first appearance, or the chosen fields, with the kinds of their
 * values. The time depends only on the number of bytes, even if each object has fields of its own. Lines that
 * are not objects are skipped. Throws RecordProblem for a line that is too long, and for the object that
 * exceeds MOST_COLUMNS fields.
 */
export function inferFields(
  { bytes, from, to, atEnd }: LinesOf,
  chosen: readonly string[] | undefined,
  rules: ValueRules,
): InferredFields {
  const fields = new Fields(chosen, rules, bytes);
  for (let p = from; p < to;) {
    const end = lineEnd(bytes, p, to, atEnd);
    if ((end < 0 ? to : end) - p > LONGEST_ROW)
      throw new RecordProblem(`the line is longer than ${LONGEST_ROW} bytes`, p, ADVICE);
    if (end < 0) break;
    fields.line(p, end);
    p = end + 1;
  }
  return fields;
}

class Fields implements InferredFields {
  readonly kinds: number[] = [];
  readonly #columns = new Map<string, number>();
  readonly #isChosen: boolean;
  readonly #rules: ValueRules;
  readonly #cursor = new JsonCursor();
  /** A block with one field, the one whose kind is being found; reused for all fields. */
  readonly #field: Parameters<typeof kindOf>[0];
  /** Kinds by column of the fields in a line; for a repeated name the last one counts. */
  readonly #inLine = new Map<number, number>();

  constructor(chosen: readonly string[] | undefined, rules: ValueRules, bytes: Uint8Array) {
    this.#isChosen = chosen !== undefined;
    this.#rules = rules;
    const one = { starts: new Int32Array(1), ends: new Int32Array(1), kinds: new Uint8Array(1) };
    this.#field = { ...one, bytes, columns: 1 };
    for (const name of chosen ?? []) this.#add(name);
  }

  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  line(from: number, to: number): void {
    this.#inLine.clear();
    try {
      this.#cursor.open(this.#field.bytes, from, to);
      while (this.#cursor.next()) this.#addKind(from);
    } catch (error) {
      if (error instanceof JsonProblem) return;
      throw error;
    }
    for (const [column, kind] of this.#inLine) this.kinds[column] |= kind;
  }

  #addKind(line: number): void {
    const { start, end, kind } = this.#cursor;
    const name = this.#cursor.key();
    const known = this.#columns.get(name);
    if (known === undefined && this.#isChosen) return;
    if (known === undefined && this.#columns.size === MOST_COLUMNS)
      throw new RecordProblem(
        `with this line there are more than ${MOST_COLUMNS} different fields, the most that are found by themselves`,
        line,
        'Name the fields to read in the option columns',
      );
    const column = known ?? this.#add(name);
    if (isSettled(this.kinds[column])) return;
    const field = this.#field;
    [field.starts[0], field.ends[0], field.kinds[0]] = [start, end, kind];
    this.#inLine.set(column, kindOf(field, 0, 0, this.#rules));
  }

  #add(name: string): number {
    this.#columns.set(name, this.kinds.length);
    return this.kinds.push(0) - 1;
  }
}
