import { Data, DataType } from 'apache-arrow';
import { readData } from '../../../engine/expressions/read.ts';
import { numbersOf } from '../../../engine/expressions/values.ts';
import { bitsOf, writeData } from '../../../engine/expressions/write.ts';
import type { Argument } from './argument.ts';

/**
 * Aggregates the values of rows by group. `codes` has the group number of each row; `groups` is the number of
 * groups so far, each with at least one row.
 */
export interface Accumulator {
  /** Adds the argument's values. Without an argument every row counts. */
  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void;
  /** Adds partial states of groups instead of rows, one column for each state. */
  merge(states: readonly Data[], codes: Uint32Array, groups: number): void;
  states(groups: number): Data[];
  result(groups: number): Data;
}

type Numbers = Float64Array | Int32Array | Uint32Array | Uint8Array;

/** The array, or a longer copy of it with spare room. */
export function grown<T extends Numbers>(values: T, length: number): T {
  if (values.length >= length) return values;
  const larger = new (values.constructor as new (length: number) => T)(
    Math.max(length, 2 * values.length, 64),
  );
  larger.set(values);
  return larger;
}

/** Records which groups have a value. */
export class Seen {
  #seen = new Uint8Array(0);
  #groups = 0;
  #missing = 0;

  /** `valid`: one byte a row, 0 for a row without a value; undefined if all rows have one. */
  add(valid: Uint8Array | undefined, codes: Uint32Array, groups: number): void {
    const before = this.#groups;
    const seen = (this.#seen = grown(this.#seen, groups));
    this.#groups = groups;
    if (valid === undefined) {
      seen.fill(1, before, groups);
      if (this.#missing === 0) return;
    } else this.#missing += groups - before;
    let missing = this.#missing;
    for (let i = 0; i < codes.length; i++) {
      if ((valid !== undefined && valid[i] === 0) || seen[codes[i]] === 1) continue;
      seen[codes[i]] = 1;
      missing--;
    }
    this.#missing = missing;
  }

  /** One byte a group, 0 for a group without a value; undefined if all groups have one. */
  valid(groups: number): Uint8Array | undefined {
    const all = this.#missing === 0 && this.#groups === groups;
    return all ? undefined : grown(this.#seen, groups).subarray(0, groups);
  }
}

/** A column of numbers. */
export function numberData(
  type: 'int64' | 'int32' | 'float64',
  values: Float64Array,
  groups: number,
  valid?: Uint8Array,
): Data {
  const own = grown(values, groups).subarray(0, groups);
  return writeData({ form: 'number', type, length: groups, constant: false, values: own, valid }, groups);
}

/** A column of fixed-width values in their own memory. */
export function fixedData(type: DataType, values: unknown, groups: number, valid?: Uint8Array): Data {
  let nullCount = 0;
  if (valid !== undefined) for (let i = 0; i < groups; i++) nullCount += 1 - valid[i];
  const bitmap = valid && nullCount > 0 ? bitsOf(valid) : undefined;
  return new Data(type, 0, groups, nullCount, { 1: values, 2: bitmap } as never);
}

/** The numbers of a stored column. */
export function numbersIn(data: Data): Float64Array {
  return numbersOf(readData(data));
}
