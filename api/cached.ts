import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../engine/json.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { Source, SourceStatistics } from '../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../engine/stream/stream.ts';
import type { Rows } from './rows.ts';

/** Rows that are kept in memory after the first read. */
export class Cached implements Source {
  readonly name = 'cached';
  readonly phase = 'read';
  readonly replayable = true;
  readonly #rows: Rows<unknown>;
  #batches: Promise<readonly RecordBatch[]> | undefined;

  constructor(rows: Rows<unknown>) {
    this.#rows = rows;
  }

  describe(): JsonObject {
    return {
      of: this.#rows.plan.kind === 'source' ? this.#rows.plan.source.name : this.#rows.plan.operator.name,
    };
  }

  schema(): Promise<Schema> {
    return this.#rows.schema();
  }

  async statistics({ signal }: ExecutionContext): Promise<SourceStatistics> {
    const batches = await this.#read({ signal });
    return { rows: batches.reduce((sum, { numRows }) => sum + numRows, 0), bytes: 0, files: 0 };
  }

  async execute({ signal }: ExecutionContext): Promise<BatchStream> {
    const batches = await this.#read({ signal });
    return batchStream(
      await this.schema(),
      (async function* () {
        yield* batches;
      })(),
    );
  }

  /** Reads the rows, or returns the kept ones. A failed read is not kept, so the next call reads again. */
  #read(options: { readonly signal?: AbortSignal }): Promise<readonly RecordBatch[]> {
    this.#batches ??= this.#rows
      .collect(options)
      .then(({ batches }) => batches)
      .catch((error: unknown) => {
        this.#batches = undefined;
        throw error;
      });
    return this.#batches;
  }
}
