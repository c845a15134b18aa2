import { Data, DataType, Field, Int32, List, makeData } from 'apache-arrow';
import { CapacityError } from '../../../engine/errors.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { type Accumulator, numberData } from './accumulator.ts';
import type { Argument } from './argument.ts';
import { Counts } from './counts.ts';
import { FewerRows } from './fewer-rows.ts';
import { newGroups } from './new-groups.ts';

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

  /** `codes`: the group of each value. They are copied, since the next batch may reuse their memory. */
  add(values: Data, codes: Uint32Array): void {
    const all = new Uint32Array(codes.length);
    for (let i = 0; i < all.length; i++) all[i] = i;
    this.#codes.push(codes.slice());
    this.#values.push(takeData(values, all));
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

/** The non-null rows of a column, and their groups. */
function present(data: Data, codes: Uint32Array): { readonly data: Data; readonly codes: Uint32Array } {
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
function elementsOf(lists: Data, codes: Uint32Array): { readonly data: Data; readonly codes: Uint32Array } {
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

  add(argument: Argument | undefined, codes: Uint32Array): void {
    if (argument === undefined) return;
    const own = present(argument.data, codes);
    this.#values.add(own.data, own.codes);
  }

  merge([lists]: readonly Data[], codes: Uint32Array): void {
    const own = elementsOf(lists, codes);
    this.#values.add(own.data, own.codes);
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

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument !== undefined) this.#add(present(argument.data, codes), groups);
  }

  merge([lists]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#add(elementsOf(lists, codes), groups);
  }

  #add({ data, codes }: { readonly data: Data; readonly codes: Uint32Array }, groups: number): void {
    const values = this.#values;
    if (values !== undefined && this.#fewer.isGivenUp) {
      values.add(data, codes);
      return;
    }
    const group = makeData({
      type: new Int32(),
      length: codes.length,
      nullCount: 0,
      data: new Int32Array(codes),
    });
    const before = this.#numbers.size;
    const pairs = this.#numbers.add([group, data], codes.length);
    const positions = newGroups(pairs, before, this.#numbers.size);
    const own = Uint32Array.from(positions, (row) => codes[row]);
    this.#counts.add(own, groups);
    if (values === undefined) return;
    values.add(takeData(data, positions), own);
    this.#fewer.count(codes.length, positions.length);
  }

  states(groups: number): Data[] {
    return [this.#values?.lists(groups) ?? this.result(groups)];
  }

  result(groups: number): Data {
    return numberData('int64', this.#counts.of(groups), groups);
  }
}
