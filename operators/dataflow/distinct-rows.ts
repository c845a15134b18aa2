import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { RowNumbers } from '../../engine/keys/row-numbers.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { FewerRows, newGroups } from './fewer-rows.ts';
import { columnAt, RowOperator, takeRows } from './row-operator.ts';

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
    super();
    this.#options = options;
    this.takesAllRows = options.step === 'whole';
  }

  static from({ keys, step }: ReturnType<DistinctRows['portable']>): DistinctRows {
    return new DistinctRows({ step, ...(keys && { keys }) });
  }

  portable() {
    const { keys, step } = this.#options;
    return { operator: 'distinct-rows', step, ...(keys && { keys: [...keys] }) } as const;
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
    let numbers: RowNumbers | undefined = new RowNumbers(positions.map((at) => input.schema.fields[at]));
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
      if (fewer.isGivenUp) numbers = undefined;
    }
  }
}
