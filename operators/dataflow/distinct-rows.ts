import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { RowNumbers } from '../../engine/keys/row-numbers.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnAt, RowOperator, takeRows } from './row-operator.ts';

/** Rows after which a partial step has decided whether it gives up. */
const ROWS = 1 << 16;
/** Number of equally frequent groups of which ROWS random rows have two thirds of ROWS. */
const GROUPS = 75_000;
/** Rows after which the step may give up for the first time. */
const SAMPLED = 1 << 14;

/** The share of `rows` random rows that are the first of one of GROUPS groups. */
function shareOfFirst(rows: number): number {
  const perGroup = rows / GROUPS;
  return (1 - Math.exp(-perGroup)) / perGroup;
}

/** With at most this number of groups whose rows are mixed, a partial step does not give up. */
export const MOST_MERGED = Math.floor((ROWS * 2) / 3);

/**
 * Decides whether a partial step, which groups rows or removes duplicates before rows are exchanged, saves
 * enough. The step after the exchange does the same work again, so a partial step that keeps more of its first
 * rows than GROUPS equally frequent groups would gives up, and passes the remaining rows on unchanged.
 */
export class FewerRows {
  #given = 0;
  #kept = 0;
  /** True once the work has stopped. */
  isGivenUp = false;
  #isDecided = false;

  /** Counts `given` rows, of which `kept` were kept. */
  count(given: number, kept: number): void {
    if (this.#isDecided) return;
    this.#given += given;
    this.#kept += kept;
    if (this.#given < SAMPLED) return;
    this.isGivenUp = this.#kept > this.#given * shareOfFirst(Math.min(this.#given, ROWS));
    this.#isDecided = this.isGivenUp || this.#given >= ROWS;
  }

  /** Number of rows to count next, of `rows` that are there: a few until the decision. */
  next(rows: number): number {
    return this.#isDecided ? rows : Math.min(rows, SAMPLED);
  }
}

/**
 * Positions of the rows that start a new group: for each group from number `before` on, its first row. Groups
 * are numbered in order of first occurrence.
 */
export function newGroups(codes: Uint32Array, before: number, groups: number): Uint32Array {
  const positions = new Uint32Array(groups - before);
  for (let i = 0, next = before; next < groups; i++) if (codes[i] === next) positions[next++ - before] = i;
  return positions;
}

export interface DistinctRowsOptions {
  /** Columns whose values are compared; default: all. */
  readonly keys?: readonly string[];
  /**
   * 'whole' removes all duplicates. 'partial' runs on parts of the rows, before a 'whole' step over all rows;
   * if it removes few rows, it stops and passes the remaining rows on unchanged.
   */
  readonly step: 'partial' | 'whole';
}

/** Keeps the first row of each combination of the keys' values, in the order of the input. */
export class DistinctRows extends RowOperator {
  readonly name = 'distinct-rows';
  readonly takesAllRows: boolean;
  readonly #options: DistinctRowsOptions;

  constructor(options: DistinctRowsOptions) {
    super([options]);
    this.#options = options;
    this.takesAllRows = options.step === 'whole';
  }

  /** Keys of a partial step. */
  get mergedBy(): readonly string[] | 'all' | undefined {
    const { step, keys = 'all' } = this.#options;
    return step === 'partial' ? keys : undefined;
  }

  describe(): JsonObject {
    const { keys, step } = this.#options;
    return { step, columns: keys ? [...keys] : 'all' };
  }

  passesNeeds({ numbers }: ValueNeeds): boolean {
    return this.#options.keys?.every((name) => !numbers.includes(name)) ?? false;
  }

  override outputSchema(input: Schema): Schema {
    this.#positions(input);
    return input;
  }

  protected override readColumns(): readonly string[] | undefined {
    return this.#options.keys;
  }

  #positions({ fields }: Schema): number[] {
    const names = fields.map(({ name }) => name);
    const keys = this.#options.keys ?? names;
    return keys.map((name) => columnAt(name, names, 'by which rows would be distinct'));
  }

  protected async *batches(input: BatchStream): AsyncGenerator<RecordBatch> {
    const positions = this.#positions(input.schema);
    const { schema, numRows } = input;
    let numbers: RowNumbers | undefined = new RowNumbers(
      positions.map((at) => schema.fields[at]),
      numRows,
    );
    const fewer = new FewerRows();
    const isWhole = this.#options.step === 'whole';
    for await (const batch of input) {
      if (numbers === undefined) {
        yield batch;
        continue;
      }
      const before = numbers.size;
      const codes = new Uint32Array(batch.numRows);
      const columns = positions.map((at) => batch.data.children[at]);
      for (let from = 0; from < batch.numRows && !fewer.isGivenUp;) {
        const rows: number = isWhole ? batch.numRows : fewer.next(batch.numRows - from);
        const known: number = numbers.size;
        const own = rows === batch.numRows ? columns : columns.map((data) => data.slice(from, rows));
        numbers.add(own, rows, codes.subarray(from, from + rows));
        if (!isWhole) fewer.count(rows, numbers.size - known);
        from += rows;
      }
      const kept = numbers.size - before;
      if (kept === batch.numRows || fewer.isGivenUp) yield batch;
      else if (kept > 0) yield takeRows(batch, newGroups(codes, before, numbers.size));
      if (!fewer.isGivenUp) continue;
      numbers.giveBack();
      numbers = undefined;
    }
    numbers?.giveBack();
  }
}
