import { Data, DataType, Int32, Int64, type RecordBatch, Schema, Field, List } from 'apache-arrow';
import { DataError, CapacityError } from '../../../engine/errors.ts';
import type { Checked } from '../../../engine/expressions/check.ts';
import { Evaluation, resultType } from '../../../engine/expressions/evaluate.ts';
import { readData, type StoredNumbers, storedNumbers } from '../../../engine/expressions/read.ts';
import type { ValueType } from '../../../engine/expressions/types.ts';
import { halvesOf, numbersOf, type Values, type WideValues } from '../../../engine/expressions/values.ts';
import { bitsOf, repeated, writeData } from '../../../engine/expressions/write.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { compareRows, type KeyWords, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import { plainData, plainType } from '../../../engine/stream/dictionary-values.ts';
import { joinData, nullData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { FewerRows, newGroups } from '../distinct-rows.ts';
import { batchOf } from '../row-operator.ts';

/**
 * Values of an aggregate's argument for the rows of one batch, in two forms: as the arrays that expressions
 * compute with (`values`), and as an Arrow column (`data`).
 */
interface Argument {
  readonly values: Values;
  /** A column of numbers without the copy that `values` would make. */
  readonly stored: StoredNumbers | undefined;
  /** One byte a row, 0 for a null; undefined if there are no nulls. */
  readonly valid: Uint8Array | undefined;
  /** Decoded if it was a dictionary. */
  readonly data: Data;
}

/** Arrow type of an argument's data; a bare column keeps its type. */
export function argumentType(checked: Checked, input: Schema): DataType {
  return plainType(resultType(checked, input));
}

/** The arguments of a batch. Each column and expression is computed once. */
export class Arguments {
  readonly #evaluation: Evaluation;
  readonly #batch: RecordBatch;
  readonly #known = new Map<Checked, Argument>();

  constructor(batch: RecordBatch) {
    this.#batch = batch;
    this.#evaluation = new Evaluation(batch);
  }

  of(checked: Checked): Argument {
    const known = this.#known.get(checked) ?? this.#make(checked);
    this.#known.set(checked, known);
    return known;
  }

  #make(checked: Checked): Argument {
    const [evaluation, { numRows: rows, data: batch, schema }] = [this.#evaluation, this.#batch];
    let [values, data]: [Values?, Data?] = [];
    const stored = checked.kind === 'column' ? storedNumbers(batch.children[checked.index]) : undefined;
    return {
      stored,
      get valid() {
        return stored ? stored.valid : this.values.valid;
      },
      get values() {
        if (values !== undefined) return values;
        const found = evaluation.values(checked);
        return (values = found.constant ? repeated(found, rows) : found);
      },
      get data() {
        return (data ??=
          checked.kind === 'column'
            ? plainData(batch.children[checked.index])
            : writeData(this.values, rows, resultType(checked, schema)));
      },
    };
  }
}

/** The argument of a count of rows. */
export const everyRow = { valid: undefined } as Argument;

/** A stored column as an argument. */
function argumentOf(data: Data): Argument {
  let values: Values | undefined;
  return {
    data,
    stored: undefined,
    get valid() {
      return this.values.valid;
    },
    get values() {
      return (values ??= readData(data));
    },
  };
}

/**
 * Aggregates the values of rows by group. `codes` has the group number of each row; `groups` is the number of
 * groups so far, each with at least one row.
 */
export interface Accumulator {
  /** Adds the argument's values. */
  add(argument: Argument, codes: Uint32Array, groups: number): void;
  /** Adds partial states of groups instead of rows, one column for each state. */
  merge(states: readonly Data[], codes: Uint32Array, groups: number): void;
  states(groups: number): Data[];
  result(groups: number): Data;
}

type Numbers = Float64Array | Int32Array | Uint32Array | Uint8Array;

/** The array, or a longer copy of it with spare room. */
function grown<T extends Numbers>(values: T, length: number): T {
  if (values.length >= length) return values;
  const larger = new (values.constructor as new (length: number) => T)(
    Math.max(length, 2 * values.length, 64),
  );
  larger.set(values);
  return larger;
}

/** Records which groups have a value. */
class Seen {
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
function numberData(
  type: 'int64' | 'int32' | 'float64',
  values: Float64Array,
  groups: number,
  valid?: Uint8Array,
): Data {
  const own = grown(values, groups).subarray(0, groups);
  return writeData({ form: 'number', type, length: groups, constant: false, values: own, valid }, groups);
}

/** A column of fixed-width values in their own memory. */
function fixedData(type: DataType, values: unknown, groups: number, valid?: Uint8Array): Data {
  let nullCount = 0;
  if (valid !== undefined) for (let i = 0; i < groups; i++) nullCount += 1 - valid[i];
  const bitmap = valid && nullCount > 0 ? bitsOf(valid) : undefined;
  return new Data(type, 0, groups, nullCount, { 1: values, 2: bitmap } as never);
}

/** The numbers of a stored column. */
function numbersIn(data: Data): Float64Array {
  return numbersOf(readData(data));
}

/** Most rows that one state can count. */
export const MOST_COUNTED = 2 ** 31 - 1;

/** Rows at the start of a batch that are inspected. */
const SAMPLE = 128;

/**
 * True if most rows have the same group as the row before, as in sorted data. A loop over runs is then
 * faster: it does not wait for each sum to be stored before the next addition.
 */
function isInRuns(codes: Uint32Array): boolean {
  const rows = Math.min(SAMPLE, codes.length);
  let same = 0;
  for (let i = 1; i < rows; i++) if (codes[i] === codes[i - 1]) same++;
  return 2 * same > rows;
}

/** Counts rows by group. */
class Counts {
  #counts = new Float64Array(0);

  add(codes: Uint32Array, groups: number): void {
    const counts = (this.#counts = grown(this.#counts, groups));
    if (!isInRuns(codes)) {
      for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
      return;
    }
    for (let i = 0, start = 0; i < codes.length; start = i) {
      const group = codes[i];
      while (i < codes.length && codes[i] === group) i++;
      counts[group] += i - start;
    }
  }

  merge(added: Int32Array, codes: Uint32Array, groups: number): void {
    const counts = (this.#counts = grown(this.#counts, groups));
    for (let i = 0; i < codes.length; i++) counts[codes[i]] += added[i];
  }

  of(groups: number): Float64Array {
    return (this.#counts = grown(this.#counts, groups));
  }
}

/** Number of rows of each group, counted once for all aggregates that need it. */
export class RowCounts extends Counts {
  /** True if any aggregate needs the counts. */
  isWanted = false;
}

/** Counts the values of each group that are not null: its rows minus its nulls, which are few. */
class ValueCounts {
  readonly #rows: RowCounts;
  #nulls = new Float64Array(0);
  readonly #merged = new Counts();
  #isMerged = false;

  constructor(rows: RowCounts) {
    rows.isWanted = true;
    this.#rows = rows;
  }

  /**
   * Adds rows that RowCounts has counted already. `valid`: one byte a row, 0 for a null; undefined if there
   * are no nulls.
   */
  add(valid: Uint8Array | undefined, codes: Uint32Array, groups: number): void {
    if (valid === undefined) return;
    const nulls = (this.#nulls = grown(this.#nulls, groups));
    for (let i = 0; i < codes.length; i++) nulls[codes[i]] += 1 - valid[i];
  }

  merge(state: Data, codes: Uint32Array, groups: number): void {
    this.#isMerged = true;
    this.#merged.merge(state.values as Int32Array, codes, groups);
  }

  of(groups: number): Float64Array {
    if (this.#isMerged) return this.#merged.of(groups);
    const rows = this.#rows.of(groups);
    if (this.#nulls.length === 0) return rows;
    const nulls = grown(this.#nulls, groups);
    const counts = new Float64Array(groups);
    for (let group = 0; group < groups; group++) counts[group] = rows[group] - nulls[group];
    return counts;
  }

  state(groups: number): Data {
    return fixedData(new Int32(), new Int32Array(this.of(groups).subarray(0, groups)), groups);
  }
}

/** Number of rows of a group, or of its values that are not null. */
export class Count implements Accumulator {
  readonly #counts: ValueCounts;

  constructor(rows: RowCounts) {
    this.#counts = new ValueCounts(rows);
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#counts.add(argument.valid, codes, groups);
  }

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#counts.merge(state, codes, groups);
  }

  states(groups: number): Data[] {
    return [this.#counts.state(groups)];
  }

  result(groups: number): Data {
    return numberData('int64', this.#counts.of(groups), groups);
  }
}

const HALF = 2 ** 32;
const SAFE = 2 ** 53;

/** Sums of groups; used by sums and means. */
interface Sums {
  add(argument: Argument, codes: Uint32Array, groups: number): void;
  merge(states: readonly Data[], codes: Uint32Array, groups: number): void;
  states(groups: number, valid: Uint8Array | undefined): Data[];
  result(groups: number, valid: Uint8Array | undefined): Data;
  /** The sum of a group as a number. */
  total(group: number): number;
}

/** Float64 sums, added in the order of the rows. */
export class FloatSums implements Sums {
  #sums = new Float64Array(0);

  add({ stored, values, valid }: Argument, codes: Uint32Array, groups: number): void {
    const sums = (this.#sums = grown(this.#sums, groups));
    if (stored?.values instanceof Float32Array && valid === undefined) addSingles(sums, stored.values, codes);
    else this.#add(numbersOf(values), valid, codes);
  }

  #add(values: Float64Array, valid: Uint8Array | undefined, codes: Uint32Array): void {
    const sums = this.#sums;
    if (valid === undefined) for (let i = 0; i < codes.length; i++) sums[codes[i]] += values[i];
    else for (let i = 0; i < codes.length; i++) if (valid[i] === 1) sums[codes[i]] += values[i];
  }

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    const column = readData(state);
    this.#sums = grown(this.#sums, groups);
    this.#add(numbersOf(column), column.valid, codes);
  }

  states(groups: number, valid: Uint8Array | undefined): Data[] {
    return [this.result(groups, valid)];
  }

  result(groups: number, valid: Uint8Array | undefined): Data {
    return numberData('float64', (this.#sums = grown(this.#sums, groups)), groups, valid);
  }

  total(group: number): number {
    return this.#sums[group];
  }
}

/** A separate loop: V8 compiles loops over several types of arrays to slower code. */
function addSingles(sums: Float64Array, values: Float32Array, codes: Uint32Array): void {
  if (!isInRuns(codes)) {
    for (let i = 0; i < codes.length; i++) sums[codes[i]] += values[i];
    return;
  }
  for (let i = 0; i < codes.length;) {
    const group = codes[i];
    let sum = sums[group];
    while (i < codes.length && codes[i] === group) sum += values[i++];
    sums[group] = sum;
  }
}

/** Exact sums of integers: low + 2^53 high, where low is a safe integer. High is 0 for nearly all groups. */
export class IntegerSums implements Sums {
  readonly #text: string;
  #low = new Float64Array(0);
  #high = new Int32Array(0);

  /** `text`: name of the sum in errors. */
  constructor(text: string) {
    this.#text = text;
  }

  add({ values }: Argument, codes: Uint32Array, groups: number): void {
    this.#add(values, codes, groups);
  }

  #add(column: Values, codes: Uint32Array, groups: number): void {
    const low = (this.#low = grown(this.#low, groups));
    if (column.form === 'wide') this.#addWide(column, codes);
    if (column.form !== 'number') return;
    const { values, valid } = column;
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const sum = low[codes[i]] + values[i];
      if (sum < SAFE && sum > -SAFE) low[codes[i]] = sum;
      else this.#carry(codes[i], values[i]);
    }
  }

  /** Adds each integer in two halves: the bits from 2^53 on, and the lower bits. */
  #addWide({ values, valid }: WideValues, codes: Uint32Array): void {
    const high = (this.#high = grown(this.#high, this.#low.length));
    const halves = halvesOf(values);
    const isSigned = values instanceof BigInt64Array;
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const code = codes[i];
      const top = halves.high[2 * i + 1];
      high[code] += isSigned ? top >> 21 : top >>> 21;
      const rest = (top & 0x1f_ffff) * HALF + halves.low[2 * i];
      const sum = this.#low[code] + rest;
      if (sum < SAFE) this.#low[code] = sum;
      else this.#carry(code, rest);
    }
  }

  /** Adds a number whose addition would make the low part unsafe. */
  #carry(group: number, value: number): void {
    const high = (this.#high = grown(this.#high, this.#low.length));
    const sign = value < 0 ? -1 : 1;
    this.#low[group] = this.#low[group] - sign * SAFE + value;
    high[group] += sign;
  }

  merge([lows, highs]: readonly Data[], codes: Uint32Array, groups: number): void {
    const column = readData(lows);
    this.#add(column, codes, groups);
    const added = highs.values as Int32Array;
    if (!added.subarray(0, highs.length).some((value) => value !== 0)) return;
    const high = (this.#high = grown(this.#high, this.#low.length));
    for (let i = 0; i < codes.length; i++)
      if (column.valid === undefined || column.valid[i] === 1) high[codes[i]] += added[i];
  }

  states(groups: number, valid: Uint8Array | undefined): Data[] {
    this.#low = grown(this.#low, groups);
    this.#high = grown(this.#high, groups);
    return [
      numberData('float64', this.#low, groups, valid),
      numberData('int32', Float64Array.from(this.#high.subarray(0, groups)), groups),
    ];
  }

  result(groups: number, valid: Uint8Array | undefined): Data {
    const [low, high] = [grown(this.#low, groups), grown(this.#high, groups)];
    const sums = new BigInt64Array(groups);
    const halves = new Int32Array(sums.buffer);
    for (let group = 0; group < groups; group++) {
      const carried = Math.floor(low[group] / HALF);
      const top = high[group] * (SAFE / HALF) + carried;
      if (top >= 2 ** 31 || top < -(2 ** 31)) throw this.#beyond(BigInt(high[group]), low[group]);
      halves[2 * group] = low[group] - carried * HALF;
      halves[2 * group + 1] = top;
    }
    return fixedData(new Int64(), sums, groups, valid);
  }

  #beyond(high: bigint, low: number): DataError {
    return new DataError(`${this.#text} is beyond int64: ${(high << 53n) + BigInt(low)}`, {
      advice: 'Sum floats: cast the column to float64',
    });
  }

  total(group: number): number {
    const high = group < this.#high.length ? this.#high[group] : 0;
    return high === 0 ? this.#low[group] : high * SAFE + this.#low[group];
  }
}

/** Sum of a group's values; null if it has none. */
export class Sum implements Accumulator {
  readonly #sums: Sums;
  readonly #seen = new Seen();

  constructor(sums: Sums) {
    this.#sums = sums;
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#sums.add(argument, codes, groups);
    this.#seen.add(argument.valid, codes, groups);
  }

  merge(states: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#sums.merge(states, codes, groups);
    this.#seen.add(readData(states[0]).valid, codes, groups);
  }

  states(groups: number): Data[] {
    return this.#sums.states(groups, this.#seen.valid(groups));
  }

  result(groups: number): Data {
    return this.#sums.result(groups, this.#seen.valid(groups));
  }
}

/** Mean of a group's values; null if it has none. */
export class Mean implements Accumulator {
  readonly #sums: Sums;
  readonly #counts: ValueCounts;

  constructor(sums: Sums, rows: RowCounts) {
    this.#sums = sums;
    this.#counts = new ValueCounts(rows);
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#sums.add(argument, codes, groups);
    this.#counts.add(argument.valid, codes, groups);
  }

  merge(states: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#sums.merge(states.slice(0, -1), codes, groups);
    this.#counts.merge(states[states.length - 1], codes, groups);
  }

  states(groups: number): Data[] {
    return [...this.#sums.states(groups, undefined), this.#counts.state(groups)];
  }

  result(groups: number): Data {
    const [counts, means] = [this.#counts.of(groups), new Float64Array(groups)];
    const valid = new Uint8Array(groups);
    for (let group = 0; group < groups; group++) {
      if (counts[group] === 0) continue;
      valid[group] = 1;
      means[group] = this.#sums.total(group) / counts[group];
    }
    return numberData('float64', means, groups, valid);
  }
}

/** Sample standard deviation (n - 1); null for fewer than two values. */
export class Deviation implements Accumulator {
  #counts = new Float64Array(0);
  #means = new Float64Array(0);
  #squares = new Float64Array(0);

  /** Welford's update. */
  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#grow(groups);
    const [counts, means, squares] = [this.#counts, this.#means, this.#squares];
    const { valid } = argument.values;
    const values = numbersOf(argument.values);
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const group = codes[i];
      const distance = values[i] - means[group];
      const mean = means[group] + distance / ++counts[group];
      means[group] = mean;
      squares[group] += distance * (values[i] - mean);
    }
  }

  /** Chan, Golub and LeVeque's formula for combining two parts. */
  merge(states: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#grow(groups);
    const [counts, means, squares] = [this.#counts, this.#means, this.#squares];
    const [ns, ms, ss] = states.map(numbersIn);
    for (let i = 0; i < codes.length; i++) {
      if (ns[i] === 0) continue;
      const group = codes[i];
      const own = counts[group];
      const all = own + ns[i];
      const distance = ms[i] - means[group];
      counts[group] = all;
      means[group] += (distance * ns[i]) / all;
      squares[group] += ss[i] + (distance * distance * own * ns[i]) / all;
    }
  }

  #grow(groups: number): void {
    this.#counts = grown(this.#counts, groups);
    this.#means = grown(this.#means, groups);
    this.#squares = grown(this.#squares, groups);
  }

  states(groups: number): Data[] {
    this.#grow(groups);
    return [
      numberData('int64', this.#counts, groups),
      numberData('float64', this.#means, groups),
      numberData('float64', this.#squares, groups),
    ];
  }

  result(groups: number): Data {
    this.#grow(groups);
    const [deviations, valid] = [new Float64Array(groups), new Uint8Array(groups)];
    for (let group = 0; group < groups; group++) {
      if (this.#counts[group] < 2) continue;
      valid[group] = 1;
      deviations[group] = Math.sqrt(this.#squares[group] / (this.#counts[group] - 1));
    }
    return numberData('float64', deviations, groups, valid);
  }
}

/** Base of the accumulators whose result is also their state. */
abstract class OwnState implements Accumulator {
  abstract add(argument: Argument, codes: Uint32Array, groups: number): void;
  abstract result(groups: number): Data;

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.add(argumentOf(state), codes, groups);
  }

  states(groups: number): Data[] {
    return [this.result(groups)];
  }
}

/** Minimum or maximum of a group; null if it has no value. NaN is larger than all numbers. */
abstract class Extreme extends OwnState {
  protected readonly takesLargest: boolean;
  /** 1 for a group that has a value. */
  protected seen = new Uint8Array(0);

  constructor(takesLargest: boolean) {
    super();
    this.takesLargest = takesLargest;
  }
}

/** For numbers that are exact in float64: all but 64-bit integers. */
export class ExtremeNumber extends Extreme {
  readonly #type: DataType;
  readonly #valueType: ValueType;
  #best = new Float64Array(0);

  constructor(takesLargest: boolean, type: DataType, valueType: ValueType) {
    super(takesLargest);
    [this.#type, this.#valueType] = [type, valueType];
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.seen = grown(this.seen, groups);
    this.#best = grown(this.#best, groups);
    const values = numbersOf(argument.values);
    if (this.takesLargest) this.#addLargest(values, argument.values.valid, codes);
    else this.#addLeast(values, argument.values.valid, codes);
  }

  #addLeast(values: Float64Array, valid: Uint8Array | undefined, codes: Uint32Array): void {
    const [best, seen] = [this.#best, this.seen];
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const group = codes[i];
      const value = values[i];
      if (seen[group] === 0) {
        seen[group] = 1;
        best[group] = value;
      } else if (value < best[group] || best[group] !== best[group]) best[group] = value;
    }
  }

  #addLargest(values: Float64Array, valid: Uint8Array | undefined, codes: Uint32Array): void {
    const [best, seen] = [this.#best, this.seen];
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const group = codes[i];
      const value = values[i];
      if (seen[group] === 0) {
        seen[group] = 1;
        best[group] = value;
      } else if (value > best[group] || value !== value) best[group] = value;
    }
  }

  result(groups: number): Data {
    const values = grown(this.#best, groups).subarray(0, groups);
    const valid = grown(this.seen, groups).subarray(0, groups);
    const shape = { type: this.#valueType, length: groups, constant: false } as const;
    const written = writeData({ form: 'number', values, valid, ...shape }, groups);
    return written.clone(this.#type);
  }
}

/** For 64-bit types with the order of integers: integers, timestamps, durations. */
export class ExtremeInteger extends Extreme {
  readonly #type: DataType;
  /** Flips the sign bit of an unsigned integer's high half, so that a signed comparison orders it. */
  readonly #flip: number;
  /** (low, high) of group g at 2g, 2g + 1. */
  #best = new Int32Array(0);

  constructor(takesLargest: boolean, type: DataType, isUnsigned: boolean) {
    super(takesLargest);
    [this.#type, this.#flip] = [type, isUnsigned ? 1 << 31 : 0];
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    const { data } = argument;
    const best = (this.#best = grown(this.#best, 2 * groups));
    const seen = (this.seen = grown(this.seen, groups));
    const { buffer, byteOffset } = data.values as BigInt64Array;
    const halves = new Int32Array(buffer, byteOffset, 2 * codes.length);
    const [hasNulls, flip, largest] = [data.nullCount > 0, this.#flip, this.takesLargest];
    for (let i = 0; i < codes.length; i++) {
      if (hasNulls && !data.getValid(i)) continue;
      const group = codes[i];
      const low = halves[2 * i];
      const high = halves[2 * i + 1];
      const own = high ^ flip;
      const other = best[2 * group + 1] ^ flip;
      const isLess = own < other || (own === other && low >>> 0 < best[2 * group] >>> 0);
      const isSame = own === other && low === best[2 * group];
      if (seen[group] === 1 && (isSame || isLess === largest)) continue;
      seen[group] = 1;
      best[2 * group] = low;
      best[2 * group + 1] = high;
    }
  }

  result(groups: number): Data {
    const { buffer } = grown(this.#best, 2 * groups).slice(0, 2 * groups);
    const values = new (this.#type.ArrayType as unknown as new (memory: ArrayBuffer) => ArrayBufferView)(
      buffer,
    );
    return fixedData(this.#type, values, groups, grown(this.seen, groups).subarray(0, groups));
  }
}

/**
 * The stored columns are compacted when they have more than one unused row for each group, plus this number.
 */
const SPARE_ROWS = 1 << 17;

/** One value for each group, of any type, kept in the columns it was read from. */
class KeptRows {
  readonly #type: DataType;
  #chunks: Data[] = [];
  /** Index of each chunk's first value among all values. */
  #starts: number[] = [];
  #rows = 0;
  /** Row + 1 of each group's value; 0 if it has none. */
  #at = new Uint32Array(0);
  #groups = 0;

  constructor(type: DataType) {
    this.#type = type;
  }

  get chunks(): readonly Data[] {
    return this.#chunks;
  }

  /** Chunk and row of a group's value; undefined if it has none. */
  find(group: number): readonly [chunk: number, row: number] | undefined {
    if (group >= this.#groups || this.#at[group] === 0) return undefined;
    const row = this.#at[group] - 1;
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] <= row) low = middle;
      else high = middle;
    }
    return [low, row - this.#starts[low]];
  }

  /** Replaces groups' values by values of a batch at some positions. True if the chunks were rebuilt. */
  replace(data: Data, positions: Uint32Array, codes: Uint32Array, groups: number): boolean {
    this.#at = grown(this.#at, groups);
    this.#groups = groups;
    if (positions.length === 0) return false;
    this.#chunks.push(takeData(data, positions));
    this.#starts.push(this.#rows);
    for (let i = 0; i < positions.length; i++) this.#at[codes[positions[i]]] = this.#rows + i + 1;
    this.#rows += positions.length;
    if (this.#rows < 2 * groups + SPARE_ROWS) return false;
    const found = new Uint32Array(groups);
    let kept = 0;
    for (let group = 0; group < groups; group++) if (this.#at[group] > 0) found[kept++] = this.#at[group] - 1;
    this.#chunks = [takeData(joinData(this.#type, this.#chunks), found.subarray(0, kept))];
    [this.#starts, this.#rows] = [[0], kept];
    for (let group = 0, row = 0; group < groups; group++) if (this.#at[group] > 0) this.#at[group] = ++row;
    return true;
  }

  /** Values by group; null if a group has none. */
  values(groups: number): Data {
    this.#at = grown(this.#at, groups);
    if (this.#rows === 0) return nullData(this.#type, groups);
    const positions = new Uint32Array(groups);
    for (let group = 0; group < groups; group++) positions[group] = Math.max(this.#at[group], 1) - 1;
    const values = takeData(joinData(this.#type, this.#chunks), positions);
    for (let group = 0; group < groups; group++) if (this.#at[group] === 0) values.setValid(group, false);
    return values;
  }
}

/** The value of one row of each group; it may be null. */
abstract class Picked extends OwnState {
  protected readonly kept: KeptRows;

  constructor(type: DataType) {
    super();
    this.kept = new KeptRows(type);
  }

  result(groups: number): Data {
    return this.kept.values(groups);
  }
}

/** The first value of each group, in the order of the input. */
export class First extends Picked {
  #groups = 0;

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    if (groups === this.#groups) return;
    const positions = newGroups(codes, this.#groups, groups);
    this.#groups = groups;
    this.kept.replace(argument.data, positions, codes, groups);
  }
}

/** The last value of each group, in the order of the input. */
export class Last extends Picked {
  #last = new Int32Array(0);

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    const last = (this.#last = grown(this.#last, groups));
    const positions = new Uint32Array(codes.length);
    for (let i = 0; i < codes.length; i++) last[codes[i]] = i;
    let found = 0;
    for (let i = 0; i < codes.length; i++) if (last[codes[i]] === i) positions[found++] = i;
    this.kept.replace(argument.data, positions.subarray(0, found), codes, groups);
  }
}

/** Minimum or maximum of a group, for text and other ordered types. Nulls are never chosen over values. */
export class ExtremeRow extends Picked {
  readonly #schema: Schema;
  readonly #keys: SortKeys;
  /** Sort words of the kept values, by chunk. */
  #words: KeyWords[] = [];
  /** Best row of this batch + 1 by group; all 0 between batches. */
  #best = new Int32Array(0);

  constructor(takesLargest: boolean, type: DataType) {
    super(type);
    this.#schema = new Schema([new Field('value', type, true)]);
    this.#keys = new SortKeys(this.#schema, [{ column: 'value', descending: takesLargest, nulls: 'last' }]);
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    const words = this.#wordsOf(argument.data);
    const best = (this.#best = grown(this.#best, groups));
    for (let i = 0; i < codes.length; i++) {
      const now = best[codes[i]];
      if (now === 0 || compareRows(words, i, words, now - 1) < 0) best[codes[i]] = i + 1;
    }
    const positions = new Uint32Array(codes.length);
    let found = 0;
    for (let i = 0; i < codes.length; i++) {
      if (best[codes[i]] !== i + 1) continue;
      best[codes[i]] = 0;
      const kept = this.kept.find(codes[i]);
      if (kept === undefined || compareRows(words, i, this.#words[kept[0]], kept[1]) < 0)
        positions[found++] = i;
    }
    const anew = this.kept.replace(argument.data, positions.subarray(0, found), codes, groups);
    if (anew) this.#words = [];
    for (const chunk of this.kept.chunks.slice(this.#words.length)) this.#words.push(this.#wordsOf(chunk));
  }

  #wordsOf(data: Data): KeyWords {
    return this.#keys.of(batchOf(this.#schema, data.length, [data]));
  }
}

export function listOf(type: DataType): List {
  return new List(new Field('item', type, true));
}

/** The non-null values of each group, in the order of the rows. */
class ValuesByGroup {
  readonly #type: DataType;
  readonly #codes: Uint32Array[] = [];
  readonly #values: Data[] = [];

  constructor(type: DataType) {
    this.#type = type;
  }

  /** The values and groups are copied, since the next batch may reuse their memory. */
  add({ data, codes }: GroupedValues): void {
    const all = new Uint32Array(codes.length);
    for (let i = 0; i < all.length; i++) all[i] = i;
    this.#codes.push(codes.slice());
    this.#values.push(takeData(data, all));
  }

  lists(groups: number): Data {
    const total = this.#codes.reduce((sum, { length }) => sum + length, 0);
    if (total >= 2 ** 31) throw new CapacityError(`lists of ${total} values do not fit into one column`);
    const offsets = new Int32Array(groups + 1);
    for (const codes of this.#codes) for (let i = 0; i < codes.length; i++) offsets[codes[i] + 1]++;
    for (let group = 0; group < groups; group++) offsets[group + 1] += offsets[group];
    const next = offsets.slice();
    const positions = new Uint32Array(total);
    let row = 0;
    for (const codes of this.#codes)
      for (let i = 0; i < codes.length; i++) positions[next[codes[i]]++] = row++;
    const values = takeData(joinData(this.#type, this.#values), positions);
    return new Data(listOf(this.#type), 0, groups, 0, { 0: offsets } as never, [values]);
  }
}

/** Values, and the group of each. */
interface GroupedValues {
  readonly data: Data;
  readonly codes: Uint32Array;
}

/** The non-null rows of a column, and their groups. */
function present(data: Data, codes: Uint32Array): GroupedValues {
  const isNull = DataType.isNull(data.type);
  if (data.nullCount === 0 && !isNull) return { data, codes };
  const [positions, kept] = [new Uint32Array(data.length), new Uint32Array(data.length)];
  let found = 0;
  for (let i = 0; i < data.length; i++) {
    if (isNull || !data.getValid(i)) continue;
    positions[found] = i;
    kept[found++] = codes[i];
  }
  return { data: takeData(data, positions.subarray(0, found)), codes: kept.subarray(0, found) };
}

/** The elements of a list column, and the group of each. */
function elementsOf(lists: Data, codes: Uint32Array): GroupedValues {
  const { valueOffsets: offsets, length } = lists;
  const [from, to] = [offsets[0], offsets[length]];
  const own = new Uint32Array(to - from);
  for (let row = 0; row < length; row++) own.fill(codes[row], offsets[row] - from, offsets[row + 1] - from);
  return { data: lists.children[0].slice(from, to - from), codes: own };
}

/** All non-null values of a group as a list, in the order of the input. */
export class Listed implements Accumulator {
  readonly #values: ValuesByGroup;

  constructor(type: DataType) {
    this.#values = new ValuesByGroup(type);
  }

  add(argument: Argument, codes: Uint32Array): void {
    this.#values.add(present(argument.data, codes));
  }

  merge([lists]: readonly Data[], codes: Uint32Array): void {
    this.#values.add(elementsOf(lists, codes));
  }

  states(groups: number): Data[] {
    return [this.result(groups)];
  }

  result(groups: number): Data {
    return this.#values.lists(groups);
  }
}

/**
 * Number of distinct non-null values of each group. The state of a partial step is the list of a group's
 * distinct values. If most values are distinct, the step stops removing duplicates (see FewerRows), since the
 * final step compares all values anyway.
 */
export class CountDistinct implements Accumulator {
  readonly #numbers: RowNumbers;
  readonly #counts = new Counts();
  /** Only for a partial step; otherwise the counts are enough. */
  readonly #values: ValuesByGroup | undefined;
  readonly #fewer = new FewerRows();

  constructor(text: string, type: DataType, isPartial: boolean) {
    this.#numbers = new RowNumbers([
      { name: 'group', type: new Int32() },
      { name: text, type },
    ]);
    this.#values = isPartial ? new ValuesByGroup(type) : undefined;
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#add(present(argument.data, codes), groups);
  }

  merge([lists]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#add(elementsOf(lists, codes), groups);
  }

  #add(grouped: GroupedValues, groups: number): void {
    const { data, codes } = grouped;
    const values = this.#values;
    if (values !== undefined && this.#fewer.isGivenUp) {
      values.add(grouped);
      return;
    }
    const group = fixedData(new Int32(), new Int32Array(codes), codes.length);
    const before = this.#numbers.size;
    const pairs = this.#numbers.add([group, data], codes.length);
    const positions = newGroups(pairs, before, this.#numbers.size);
    const own = Uint32Array.from(positions, (row) => codes[row]);
    this.#counts.add(own, groups);
    if (values === undefined) return;
    values.add({ data: takeData(data, positions), codes: own });
    this.#fewer.count(codes.length, positions.length);
  }

  states(groups: number): Data[] {
    return [this.#values?.lists(groups) ?? this.result(groups)];
  }

  result(groups: number): Data {
    return numberData('int64', this.#counts.of(groups), groups);
  }
}
