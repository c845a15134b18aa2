import { type Data, type DataType, Field, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import { compareRows, type KeyWords, SortKeys } from '../../../engine/sorting/sort-keys.ts';
import { type Accumulator, grown } from './accumulator.ts';
import { type Argument, argumentOf } from './argument.ts';
import { KeptRows } from './kept-rows.ts';
import { newGroups } from './new-groups.ts';

/** The value of one row of each group; it may be null. */
abstract class Picked implements Accumulator {
  protected readonly kept: KeptRows;

  constructor(type: DataType) {
    this.kept = new KeptRows(type);
  }

  abstract add(argument: Argument | undefined, codes: Uint32Array, groups: number): void;

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.add(argumentOf(state), codes, groups);
  }

  states(groups: number): Data[] {
    return [this.result(groups)];
  }

  result(groups: number): Data {
    return this.kept.values(groups);
  }
}

/** The first value of each group, in the order of the input. */
export class First extends Picked {
  #groups = 0;

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined || groups === this.#groups) return;
    const positions = newGroups(codes, this.#groups, groups);
    this.#groups = groups;
    this.kept.replace(argument.data, positions, codes, groups);
  }
}

/** The last value of each group, in the order of the input. */
export class Last extends Picked {
  #last = new Int32Array(0);

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
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

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
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
    const struct = makeData({
      type: new Struct(this.#schema.fields),
      length: data.length,
      nullCount: 0,
      children: [data],
    });
    return this.#keys.of(new RecordBatch(this.#schema, struct));
  }
}
