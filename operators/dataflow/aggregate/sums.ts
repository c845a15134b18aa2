import { type Data, Int64 } from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import { readData } from '../../../engine/expressions/read.ts';
import { halvesOf, numbersOf, type Values, type WideValues } from '../../../engine/expressions/values.ts';
import { type Accumulator, fixedData, grown, numberData, numbersIn, Seen } from './accumulator.ts';
import type { Argument } from './argument.ts';
import { isInRuns, type RowCounts, ValueCounts } from './counts.ts';

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

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
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

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
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
  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
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
