import type { RecordBatch, Schema } from 'apache-arrow';
import { type LogicalPlan, andThen, executePlan, operatorsOf, rootSource, runInto, schemaOf } from '../engine/logical-plan.ts';
import type { Operator } from '../engine/operator.ts';
import type { BatchStream } from '../engine/stream.ts';
import { ParquetSink, type ParquetSinkOptions, type WriteSummary } from '../connectors/parquet-sink.ts';
import { RandomSplit, splitBounds, type SplitOptions } from '../operators/random-split.ts';
import type { RunOptions, Session } from './session.ts';

/**
 * Rows that are not read yet: a logical plan over a source. Immutable; every method that gives another data set only
 * describes it. Iterating (`for await`) runs the plan and yields record batches.
 */
export class Dataset implements AsyncIterable<RecordBatch> {
  readonly session: Session;
  readonly plan: LogicalPlan;

  constructor(session: Session, plan: LogicalPlan) {
    this.session = session;
    this.plan = plan;
  }

  /** The columns; opens metadata only. */
  async schema(): Promise<Schema> {
    return schemaOf(this.plan);
  }

  /** This data set through one more operator, of the library's or of one's own. */
  pipe(operator: Operator): Dataset {
    return new Dataset(this.session, andThen(this.plan, operator));
  }

  /**
   * Cuts the rows into parts of about the given weights by a hash of (user, item, seed), so that the parts don't depend on
   * the order of rows and repetitions of a pair stay together. Columns default to the first two that can be ids.
   */
  randomSplit(weights: readonly number[], options: Partial<SplitOptions> = {}): Dataset[] {
    const { seed = 0, ...columns } = options;
    return splitBounds(weights).map(([from, to]) => this.pipe(new RandomSplit(from, to, { seed, ...columns })));
  }

  /** Runs the plan; `columns` lets sources prune the others. */
  async stream(options: RunOptions & { readonly columns?: readonly string[] } = {}): Promise<BatchStream> {
    return executePlan(this.plan, this.session.context(options), options.columns);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<RecordBatch> {
    yield* await this.stream();
  }

  /** Number of rows; from metadata where no operator changes it. */
  async count(options: RunOptions = {}): Promise<number> {
    const source = rootSource(this.plan);
    if (operatorsOf(this.plan).length === 0 && source.statistics) return (await source.statistics()).rows;
    let rows = 0;
    for await (const batch of await this.stream(options)) rows += batch.numRows;
    return rows;
  }

  /** Writers. Output appears under its name only when it is whole. */
  get write() {
    return {
      /** A folder of part files, or one file when the path ends in .parquet. */
      parquet: (path: string, options: ParquetSinkOptions & RunOptions = {}): Promise<WriteSummary> => {
        const { signal, onEvent, ...sink } = options;
        return runInto(this.plan, new ParquetSink(path, sink), this.session.context({ signal, onEvent }));
      },
    };
  }
}
