import type { RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { RowFilter } from '../dataflow/row-operator.ts';
import { requireTimes, timesOf } from './times.ts';

/** Times in [from, to), in the column's unit; an absent end is open. */
export interface TimeRange {
  readonly from?: number;
  readonly to?: number;
}

/** Keeps the rows whose time is in a range. All rows with the same time are on the same side of a cut. */
export class TimeSplit extends RowFilter {
  readonly name = 'time-split';
  readonly passesNeeds = true;
  readonly #column: string;
  readonly #range: TimeRange;

  constructor(column: string, range: TimeRange) {
    super();
    const { from, to } = range;
    for (const end of [from, to])
      if (end !== undefined && Number.isNaN(end))
        throw new UsageError('the ends of a range of times must be numbers, got NaN');
    if (from !== undefined && to !== undefined && from >= to)
      throw new UsageError(`a range of times must end after it begins, got ${from} to ${to}`);
    this.#column = column;
    this.#range = range;
  }

  describe(): JsonObject {
    const { from = null, to = null } = this.#range;
    return { column: this.#column, from, to };
  }

  portable() {
    return { operator: 'time-split', column: this.#column, range: { ...this.#range } } as const;
  }

  static from({ column, range }: ReturnType<TimeSplit['portable']>): TimeSplit {
    return new TimeSplit(column, range);
  }

  override outputSchema(input: Schema): Schema {
    requireTimes(input, this.#column);
    return input;
  }

  protected override readColumns(): readonly string[] {
    return [this.#column];
  }

  protected selection() {
    const { from = Number.NEGATIVE_INFINITY, to } = this.#range;
    return (batch: RecordBatch) => {
      const times = timesOf(batch, this.#column);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < times.length; i++)
        if (times[i] >= from && (to === undefined || times[i] < to)) positions[kept++] = i;
      return positions.subarray(0, kept);
    };
  }
}
