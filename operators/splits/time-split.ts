import type { Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeRows } from '../dataflow/take-rows.ts';
import { requireTimes, timesOf } from './times.ts';

/** Times in [from, to), in the column's unit; an absent end is open. */
export interface TimeRange {
  readonly from?: number;
  readonly to?: number;
}

/** Keeps the rows whose time is in a range. All rows with the same time are on the same side of a cut. */
export class TimeSplit implements Operator {
  readonly name = 'time-split';
  readonly passesNeeds = true;
  readonly #column: string;
  readonly #range: TimeRange;

  constructor(column: string, range: TimeRange) {
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

  outputSchema(input: Schema): Schema {
    requireTimes(input, this.#column);
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted && [...new Set([...wanted, this.#column])];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(this.outputSchema(input.schema), this.#filter(input));
  }

  async *#filter(input: BatchStream) {
    const { from = Number.NEGATIVE_INFINITY, to } = this.#range;
    for await (const batch of input) {
      const times = timesOf(batch, this.#column);
      const positions = new Uint32Array(batch.numRows);
      let kept = 0;
      for (let i = 0; i < times.length; i++)
        if (times[i] >= from && (to === undefined || times[i] < to)) positions[kept++] = i;
      if (kept === batch.numRows) yield batch;
      else if (kept > 0) yield takeRows(batch, positions.subarray(0, kept));
    }
  }
}
