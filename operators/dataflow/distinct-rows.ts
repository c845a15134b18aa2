import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { RowNumbers } from '../../engine/keys/row-numbers.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnAt, RowOperator, takeRows } from './row-operator.ts';

/** After ROWS rows the step continues only if it has removed at least this share of them. */
const ROWS = 1 << 16;
const SHARE = 1 / 3;

/**
 * With at most this number of groups, a partial step always removes at least SHARE of the first ROWS rows.
 */
export const MOST_MERGED = Math.floor(ROWS * (1 - SHARE));

/**
 * Decides whether a partial step, which groups rows or removes duplicates before rows are exchanged, saves
 * enough. The step after the exchange does the same work again, so a partial step that removes few of the
 * first ROWS rows gives up and passes the remaining rows on unchanged.
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
    if (this.#given < ROWS) return;
    this.#isDecided = true;
    this.isGivenUp = this.#kept > this.#given * (1 - SHARE);
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
    for await (const batch of input) {
      if (numbers === undefined) {
        yield batch;
        continue;
      }
      const before = numbers.size;
      const codes = numbers.add(
        positions.map((at) => batch.data.children[at]),
        batch.numRows,
      );
      const kept = numbers.size - before;
      if (kept === batch.numRows) yield batch;
      else if (kept > 0) yield takeRows(batch, newGroups(codes, before, numbers.size));
      if (this.#options.step === 'whole') continue;
      fewer.count(batch.numRows, kept);
      if (!fewer.isGivenUp) continue;
      numbers.giveBack();
      numbers = undefined;
    }
    numbers?.giveBack();
  }
}
