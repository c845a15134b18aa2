/** Accumulators of counts, sums, means and deviations, and what all accumulators share. */
import {
  Data,
  DataType,
  type Decimal,
  Field,
  Float64,
  Int32,
  Int64,
  type RecordBatch,
  Schema,
  Struct,
} from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import type { Checked } from '../../../engine/expressions/check.ts';
import { beyondDigits, decimalMean, floatsOf } from '../../../engine/expressions/decimals.ts';
import { Evaluation, resultType } from '../../../engine/expressions/evaluate.ts';
import { readData, type StoredNumbers, storedNumbers } from '../../../engine/expressions/read.ts';
import { withScratch } from '../../../engine/expressions/scratch.ts';
import {
  arrowTypeOf,
  decimalType,
  isDecimal,
  isFloat,
  MOST_DIGITS,
  scaleOf,
  type ValueType,
  valueTypeOf,
} from '../../../engine/expressions/types.ts';
import {
  decimals,
  halvesOf,
  numbersOf,
  type Values,
  type WideValues,
} from '../../../engine/expressions/values.ts';
import { bitsOf, repeated, writeData } from '../../../engine/expressions/write.ts';
import { hasNulls, isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { plainData, plainType } from '../../../engine/stream/dictionary-values.ts';

/**
 * Values of an aggregate's argument for the rows of one batch, in two forms: as the arrays that expressions
 * compute with (`values`), and as an Arrow column (`data`).
 */
export interface Argument {
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

/** Type of the argument of `minBy` and `maxBy`: null where either is null. */
export function pairType(by: DataType, value: DataType): Struct {
  return new Struct([new Field('by', by, true), new Field('value', value, true)]);
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

  /** An argument, as a struct with the values of `by` if there are any; without one, that of a count of rows. */
  of(checked: Checked | undefined, by?: Checked): Argument {
    if (checked === undefined) return everyRow;
    const known = this.#known.get(checked) ?? this.#make(checked);
    this.#known.set(checked, known);
    return by === undefined ? known : pairOf(this.of(by).data, known.data);
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
const everyRow = { valid: undefined } as Argument;

function pairOf(by: Data, value: Data): Argument {
  const isWhole = !hasNulls(by) && !hasNulls(value);
  const valid = Uint8Array.from({ length: isWhole ? 0 : by.length }, (_, row) =>
    isNullAt(by, row) || isNullAt(value, row) ? 0 : 1,
  );
  const nullCount = valid.reduce((sum, one) => sum + 1 - one, 0);
  const bitmap = nullCount > 0 ? bitsOf(valid) : undefined;
  const type = pairType(by.type, value.type);
  return argumentOf(new Data(type, 0, by.length, nullCount, { 2: bitmap } as never, [by, value]));
}

/** A stored column as an argument. */
export function argumentOf(data: Data): Argument {
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

/** Groups from which on arrays get room for all expected groups, and the most that are expected. */
const SAMPLED = 1 << 11;
const MOST_EXPECTED = 1 << 20;

let expected = 0;

/**
 * Adds rows to accumulators. `groups`: the number of groups that there will probably be. Their arrays then get
 * this length once, in place of twice the length again and again.
 */
export function withRoom(groups: number | undefined, add: () => void): void {
  expected = Math.min(groups ?? 0, MOST_EXPECTED);
  try {
    withScratch(add);
  } finally {
    expected = 0;
  }
}

/** The array, or a longer copy of it with spare room. */
export function grown<T extends Numbers>(values: T, length: number): T {
  if (values.length >= length) return values;
  const least = Math.max(length, 2 * values.length, 64);
  const larger = new (values.constructor as new (length: number) => T)(
    length >= SAMPLED && expected >= length ? expected : least,
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
export class Counts {
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
  #state: Data | undefined;

  /** The counts as states, made once for all aggregates when all rows are counted. */
  state(groups: number): Data {
    return (this.#state ??= countState(this.of(groups), groups));
  }
}

function countState(counts: Float64Array, groups: number): Data {
  const state = new Int32Array(groups);
  for (let group = 0; group < groups; group++) state[group] = counts[group];
  return fixedData(new Int32(), state, groups);
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
    const isOfRows = !this.#isMerged && this.#nulls.length === 0;
    return isOfRows ? this.#rows.state(groups) : countState(this.of(groups), groups);
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

/** The type of a sum. */
export function sumType(type: ValueType): DataType {
  if (isDecimal(type)) return arrowTypeOf(decimalType({ digits: MOST_DIGITS, scale: scaleOf(type) }));
  return isFloat(type) ? new Float64() : new Int64();
}

/** Sums of groups; used by sums and means. */
interface Sums {
  add(argument: Argument, codes: Uint32Array, groups: number): void;
  merge(states: readonly Data[], codes: Uint32Array, groups: number): void;
  states(groups: number, valid: Uint8Array | undefined): Data[];
  result(groups: number, valid: Uint8Array | undefined): Data;
  /** The mean of a group's `count` values. */
  mean(group: number, count: number): number;
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

  mean(group: number, count: number): number {
    return this.#sums[group] / count;
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
      fixedData(new Int32(), this.#high.slice(0, groups), groups),
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

  /** The sums, if all of them are safe integers. */
  safe(groups: number): Float64Array | undefined {
    return this.#high.some((high) => high !== 0) ? undefined : grown(this.#low, groups).subarray(0, groups);
  }

  safeAt(group: number): number | undefined {
    return (this.#high[group] ?? 0) === 0 ? this.#low[group] : undefined;
  }

  exact(group: number): bigint {
    return (BigInt(this.#high[group] ?? 0) << 53n) + BigInt(this.#low[group] ?? 0);
  }

  mean(group: number, count: number): number {
    const high = group < this.#high.length ? this.#high[group] : 0;
    return (high === 0 ? this.#low[group] : high * SAFE + this.#low[group]) / count;
  }
}

/** Exact sums of decimals: the safe numbers among them as integers, the others by group. */
export class DecimalSums implements Sums {
  readonly #text: string;
  readonly #type: Decimal;
  readonly #small: IntegerSums;
  readonly #large = new Map<number, bigint>();

  /** `text`: name of the sum in errors. */
  constructor(text: string, type: Decimal) {
    [this.#text, this.#type] = [text, type];
    this.#small = new IntegerSums(text);
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    const { values } = argument;
    if (values.form !== 'big') return this.#small.add(argument, codes, groups);
    for (let i = 0; i < codes.length; i++)
      if (values.valid?.[i] !== 0) this.#large.set(codes[i], this.#largeOf(codes[i]) + values.values[i]);
  }

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.add(argumentOf(state), codes, groups);
  }

  states(groups: number, valid: Uint8Array | undefined): Data[] {
    return [this.result(groups, valid)];
  }

  result(groups: number, valid: Uint8Array | undefined): Data {
    const shape = { type: valueTypeOf(this.#type), valid, constant: false };
    const safe = this.#large.size === 0 ? this.#small.safe(groups) : undefined;
    const sum = (_: unknown, group: number) => this.#small.exact(group) + this.#largeOf(group);
    const sums: Values =
      safe === undefined
        ? decimals(Array.from({ length: groups }, sum), shape)
        : { form: 'number', values: safe, length: groups, ...shape };
    if (sums.form === 'big' && beyondDigits(sums).includes(1))
      throw new DataError(`${this.#text} is beyond ${shape.type}`, { advice: 'Cast the column to float64' });
    return writeData(sums, groups, this.#type);
  }

  mean(group: number, count: number): number {
    const safe = this.#large.has(group) ? undefined : this.#small.safeAt(group);
    const sum = safe ?? this.#small.exact(group) + this.#largeOf(group);
    return decimalMean(sum, count, this.#type.scale);
  }

  #largeOf(group: number): bigint {
    return this.#large.get(group) ?? 0n;
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
    let valid: Uint8Array | undefined;
    for (let group = 0; group < groups; group++) {
      if (counts[group] > 0) means[group] = this.#sums.mean(group, counts[group]);
      else (valid ??= new Uint8Array(groups).fill(1))[group] = 0;
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
    const values = floatsOf(argument.values);
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
