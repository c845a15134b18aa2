import { type Data, makeData, RecordBatch, type Schema, Struct } from 'apache-arrow';
import { withScratch } from '../../../engine/expressions/scratch.ts';
import { RowNumbers } from '../../../engine/keys/row-numbers.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { plainData } from '../../../engine/stream/plain-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import type { Accumulator } from './accumulator.ts';
import { Arguments } from './argument.ts';
import { RowCounts } from './counts.ts';
import { newGroups } from './new-groups.ts';
import type { AggregatedColumn, AggregateStep, GroupKey } from './aggregated-columns.ts';

/** Most rows and bytes in a batch of the result. */
const BATCH_ROWS = 1 << 16;
const BATCH_BYTES = 4 << 20;

/** Keys and aggregations over the columns of an input, and the columns of the result. */
export interface Grouping {
  readonly keys: readonly GroupKey[];
  readonly columns: readonly AggregatedColumn[];
  readonly step: AggregateStep;
  readonly schema: Schema;
}

/** The groups of rows, with the accumulators of their aggregates. */
export class Groups {
  readonly #grouping: Grouping;
  readonly #numbers: RowNumbers;
  readonly #accumulators: readonly Accumulator[];
  readonly #counts = new RowCounts();
  /** Group of each row in the current batch. */
  #codes = new Uint32Array(0);
  /** Keys of the groups, in chunks. */
  readonly #keys: Data[][];
  #size = 0;
  /** Number of added rows. */
  rows = 0;

  constructor(grouping: Grouping) {
    const { keys, columns, step } = grouping;
    this.#grouping = grouping;
    this.#numbers = new RowNumbers(keys.map(({ field }) => field));
    this.#accumulators = columns.map(({ form }) => form.make(step === 'partial', this.#counts));
    this.#keys = keys.map(() => []);
  }

  get size(): number {
    return this.#size;
  }

  add(batch: RecordBatch): void {
    const { keys } = this.#grouping;
    const columns = keys.map(({ index }) => batch.data.children[index]);
    const before = this.#numbers.size;
    if (this.#codes.length < batch.numRows) this.#codes = new Uint32Array(batch.numRows);
    const codes = this.#codes.subarray(0, batch.numRows);
    this.#numbers.add(columns, batch.numRows, codes);
    this.#size = this.#numbers.size;
    if (this.#size > before) {
      const first = newGroups(codes, before, this.#size);
      columns.forEach((data, i) => this.#keys[i].push(plainData(takeData(data, first))));
    }
    this.#collect(batch, codes);
  }

  /** Adds a batch with each row as its own group. It must be the only batch. */
  addEach(batch: RecordBatch): this {
    const codes = new Uint32Array(batch.numRows);
    for (let i = 0; i < codes.length; i++) codes[i] = i;
    this.#size = codes.length;
    this.#grouping.keys.forEach(({ index }, i) => this.#keys[i].push(plainData(batch.data.children[index])));
    this.#collect(batch, codes);
    return this;
  }

  #collect(batch: RecordBatch, codes: Uint32Array): void {
    const { columns, step } = this.#grouping;
    this.rows += batch.numRows;
    if (step !== 'final' && this.#counts.isWanted) this.#counts.add(codes, this.#size);
    withScratch(() => {
      const values = new Arguments(batch);
      for (const [i, { checked, states }] of columns.entries()) {
        const accumulator = this.#accumulators[i];
        if (step !== 'final') accumulator.add(checked && values.of(checked), codes, this.#size);
        else
          accumulator.merge(
            states.map((at) => batch.data.children[at]),
            codes,
            this.#size,
          );
      }
    });
  }

  /** The result in batches. */
  *batches(): Generator<RecordBatch> {
    const { columns, step, schema, keys } = this.#grouping;
    const isEmpty = this.#size === 0;
    // Without keys all rows are one group, even for an empty input.
    const groups = isEmpty && keys.length === 0 && step !== 'partial' ? 1 : this.#size;
    if (groups === 0) return;
    const results = this.#accumulators.flatMap((accumulator, i) => {
      if (step === 'partial') return accumulator.states(groups);
      return [accumulator.result(groups).clone(columns[i].form.result.type)];
    });
    const bytes = results.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const rows = Math.min(BATCH_ROWS, Math.max(1, Math.floor((BATCH_BYTES / bytes) * groups)));
    const parts = this.#keys.map((chunks, i) => new Parts(keys[i].field.type, chunks));
    const type = new Struct(schema.fields);
    let from = 0;
    for (const length of lengthsOf(this.#keys[0]?.map((part) => part.length) ?? [groups], rows)) {
      const children = [
        ...parts.map((part) => part.next(length)),
        ...results.map((data) => (length === groups ? data : data.slice(from, length))),
      ];
      from += length;
      yield new RecordBatch(schema, makeData({ type, length, nullCount: 0, children }));
    }
  }
}

/**
 * Cuts rows, stored in chunks of lengths `parts`, into batches of at most `most` rows; yields the length of
 * each batch. Chunks that fit are not cut, so that they need not be copied.
 */
function* lengthsOf(parts: readonly number[], most: number): Generator<number> {
  let rows = 0;
  for (const part of parts) {
    if (rows > 0 && rows + part > most) {
      yield rows;
      rows = 0;
    }
    for (rows += part; rows >= most; rows -= most) yield most;
  }
  if (rows > 0) yield rows;
}

/** A column in parts, read from its first row. */
class Parts {
  readonly #type: Data['type'];
  readonly #parts: readonly Data[];
  #part = 0;
  #row = 0;

  constructor(type: Data['type'], parts: readonly Data[]) {
    [this.#type, this.#parts] = [type, parts];
  }

  next(rows: number): Data {
    const taken: Data[] = [];
    for (let left = rows; left > 0;) {
      const part = this.#parts[this.#part];
      const length = Math.min(left, part.length - this.#row);
      taken.push(length === part.length ? part : part.slice(this.#row, length));
      left -= length;
      this.#row += length;
      if (this.#row < part.length) continue;
      this.#part++;
      this.#row = 0;
    }
    return joinData(this.#type, taken);
  }
}
