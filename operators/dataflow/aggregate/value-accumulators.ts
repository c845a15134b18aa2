/** Accumulators that keep values of the rows: extremes, first and last ones, lists, and distinct values. */
import { Data, DataType, Field, Int32, List, Schema } from 'apache-arrow';
import { CapacityError } from '../../../engine/errors.ts';
import { readData } from '../../../engine/expressions/read.ts';
import type { ValueType } from '../../../engine/expressions/types.ts';
import { numbersOf } from '../../../engine/expressions/values.ts';
import { writeData } from '../../../engine/expressions/write.ts';
import { isNullAt } from '../../../engine/keys/arrow-keys.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { compareRows, type KeyWords, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import { joinData, nullData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { FewerRows, newGroups } from '../distinct-rows.ts';
import { batchOf } from '../row-operator.ts';
import {
  type Accumulator,
  type Argument,
  argumentOf,
  Counts,
  fixedData,
  grown,
  numberData,
} from './accumulators.ts';

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

/** The first value of each group that is not null, in the order of the input. */
export class FirstPresent extends Picked {
  #has = new Uint8Array(0);

  add({ data }: Argument, codes: Uint32Array, groups: number): void {
    const has = (this.#has = grown(this.#has, groups));
    const positions = new Uint32Array(codes.length);
    let found = 0;
    for (let i = 0; i < codes.length; i++) {
      if (has[codes[i]] === 1 || isNullAt(data, i)) continue;
      has[codes[i]] = 1;
      positions[found++] = i;
    }
    this.kept.replace(data, positions.subarray(0, found), codes, groups);
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

/**
 * The row of a group with the smallest or largest value of an ordered type, the first of them in the order of
 * the input. Nulls are never chosen over values.
 */
export class ExtremeRow extends Picked {
  readonly #schema: Schema;
  readonly #keys: SortKeys;
  /** Sort words of the kept values, by chunk. */
  #words: KeyWords[] = [];
  /** Best row of this batch + 1 by group; all 0 between batches. */
  #best = new Int32Array(0);

  /** `ordered`: type of the values to compare, by default those that are kept. */
  constructor(takesLargest: boolean, type: DataType, ordered = type) {
    super(type);
    this.#schema = new Schema([new Field('value', ordered, true)]);
    this.#keys = new SortKeys(this.#schema, [{ column: 'value', descending: takesLargest, nulls: 'last' }]);
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.choose(argument.data, codes, groups);
  }

  /** The values to compare of kept values. */
  protected orderedOf(data: Data): Data {
    return data;
  }

  protected choose(data: Data, codes: Uint32Array, groups: number): void {
    const words = this.#wordsOf(data);
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
    const anew = this.kept.replace(data, positions.subarray(0, found), codes, groups);
    if (anew) this.#words = [];
    for (const chunk of this.kept.chunks.slice(this.#words.length)) this.#words.push(this.#wordsOf(chunk));
  }

  #wordsOf(data: Data): KeyWords {
    return this.#keys.of(batchOf(this.#schema, data.length, [this.orderedOf(data)]));
  }
}

/** The value of the row with the smallest or largest `by`, of structs (by, value). Null structs are ignored. */
export class ValueBy extends ExtremeRow {
  constructor(takesLargest: boolean, type: DataType) {
    super(takesLargest, type, type.children[0].type);
  }

  override add(argument: Argument, codes: Uint32Array, groups: number): void {
    const own = present(argument.data, codes);
    this.choose(own.data, own.codes, groups);
  }

  protected override orderedOf({ children: [by] }: Data): Data {
    return by;
  }

  override states(groups: number): Data[] {
    return [this.kept.values(groups)];
  }

  override result(groups: number): Data {
    const rows = this.kept.values(groups);
    const [, values] = rows.children;
    for (let group = 0; group < groups; group++) if (!rows.getValid(group)) values.setValid(group, false);
    return values;
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

/** The quantile `p` of a group's numbers, of all their values; null if it has none. */
export class Quantile implements Accumulator {
  readonly #p: number;
  readonly #type: DataType;
  readonly #values: ValuesByGroup;

  /** `type`: float64, as which all numbers are read, or a type of decimals. */
  constructor(p: number, type: DataType) {
    [this.#p, this.#type] = [p, type];
    this.#values = new ValuesByGroup(type);
  }

  add({ values }: Argument, codes: Uint32Array): void {
    const column = DataType.isDecimal(this.#type)
      ? writeData(values, codes.length)
      : numberData('float64', numbersOf(values), codes.length, values.valid);
    this.#values.add(present(column, codes));
  }

  merge([lists]: readonly Data[], codes: Uint32Array): void {
    this.#values.add(elementsOf(lists, codes));
  }

  states(groups: number): Data[] {
    return [this.#values.lists(groups)];
  }

  result(groups: number): Data {
    const { valueOffsets: offsets, children } = this.#values.lists(groups);
    const column = readData(children[0]);
    const valid = Uint8Array.from({ length: groups }, (_, group) =>
      offsets[group + 1] > offsets[group] ? 1 : 0,
    );
    const shape = { type: column.type, length: groups, valid, constant: false };
    if (column.form === 'big') {
      const values = Array.from(valid, (isThere, group) =>
        isThere ? this.#ofBigs(column.values.slice(offsets[group], offsets[group + 1])) : 0n,
      );
      return writeData({ form: 'big', values, ...shape }, groups, this.#type);
    }
    const numbers = numbersOf(column);
    const values = Float64Array.from(valid, (isThere, group) =>
      isThere ? this.#ofNumbers(numbers.subarray(offsets[group], offsets[group + 1])) : 0,
    );
    return writeData({ form: 'number', values, ...shape }, groups, this.#type);
  }

  /** NaN is the largest number. Between two decimals, digits beyond theirs are cut off. */
  #ofNumbers(numbers: Float64Array): number {
    numbers.sort();
    const at = this.#p * (numbers.length - 1);
    const [low, high] = [numbers[Math.floor(at)], numbers[Math.ceil(at)]];
    if (Number.isInteger(at)) return low;
    const more = (high - low) * (at - Math.floor(at));
    return low + (DataType.isDecimal(this.#type) ? Math.trunc(more) : more);
  }

  #ofBigs(values: bigint[]): bigint {
    values.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const at = this.#p * (values.length - 1);
    const [low, high] = [values[Math.floor(at)], values[Math.ceil(at)]];
    return low + BigInt(Math.trunc(Number(high - low) * (at - Math.floor(at))));
  }
}

interface DistinctOptions {
  /** The aggregate as text, for errors. */
  readonly text: string;
  readonly type: DataType;
  readonly isPartial: boolean;
  /** True for lists of the values, false for their number. */
  readonly isList: boolean;
}

/**
 * The distinct non-null values of each group in the order of the input, or their number. The state of a
 * partial step is the list of a group's distinct values. If most values are distinct, the step stops removing
 * duplicates (see FewerRows), since the final step compares all values anyway.
 */
export class DistinctValues implements Accumulator {
  readonly #numbers: RowNumbers;
  readonly #counts = new Counts();
  readonly #isList: boolean;
  /** For lists and the states of a partial step; otherwise the counts are enough. */
  readonly #values: ValuesByGroup | undefined;
  readonly #fewer: FewerRows | undefined;

  constructor({ text, type, isPartial, isList }: DistinctOptions) {
    this.#numbers = new RowNumbers([
      { name: 'group', type: new Int32() },
      { name: text, type },
    ]);
    this.#isList = isList;
    this.#values = isPartial || isList ? new ValuesByGroup(type) : undefined;
    this.#fewer = isPartial ? new FewerRows() : undefined;
  }

  add(argument: Argument, codes: Uint32Array, groups: number): void {
    this.#add(present(argument.data, codes), groups);
  }

  merge([lists]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#add(elementsOf(lists, codes), groups);
  }

  #add(grouped: GroupedValues, groups: number): void {
    const { data, codes } = grouped;
    if (this.#fewer?.isGivenUp) {
      this.#values?.add(grouped);
      return;
    }
    const group = fixedData(new Int32(), new Int32Array(codes), codes.length);
    const before = this.#numbers.size;
    const pairs = this.#numbers.add([group, data], codes.length);
    const positions = newGroups(pairs, before, this.#numbers.size);
    const own = Uint32Array.from(positions, (row) => codes[row]);
    this.#counts.add(own, groups);
    this.#values?.add({ data: takeData(data, positions), codes: own });
    this.#fewer?.count(codes.length, positions.length);
  }

  states(groups: number): Data[] {
    return [this.#values?.lists(groups) ?? this.result(groups)];
  }

  result(groups: number): Data {
    if (this.#isList && this.#values !== undefined) return this.#values.lists(groups);
    return numberData('int64', this.#counts.of(groups), groups);
  }
}
