import type { RecordBatch, Schema } from 'apache-arrow';
import { readSplit } from '../../connectors/read-split.ts';
import type { TaskScope } from '../../cpu/handler.ts';
import { throwIfAborted } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import { batchStream, type BatchStream, type NeededRows } from '../../engine/stream/stream.ts';
import type { SplitEnd } from '../../engine/stream/split.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import { type DeviceSpan, fileSpan } from '../../engine/trace/trace.ts';
import type { ReadParams } from '../../operators/tasks/reading-tasks.ts';
import { isIpc, unpackedRows } from '../../engine/stream/packed-rows.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';

/** Milliseconds between two checks of a task for its cancellation. */
const LOOK_EVERY = 20;

/** Runs `read` over the rows of a task's splits until the task is cancelled. */
export async function whileWanted<Result>(
  scope: TaskScope,
  read: (rows: SplitRows) => Promise<Result>,
): Promise<Result> {
  const cancelling = new AbortController();
  const timer = setInterval(() => scope.cancelled() && cancelling.abort(), LOOK_EVERY);
  try {
    return await read(
      new SplitRows(
        openIpc(scope.partition('schema').columns.bytes as Uint8Array).schema,
        cancelling.signal,
        () => scope.cancelled(),
      ),
    );
  } finally {
    clearInterval(timer);
  }
}

/** The rows of splits, in order. */
export class SplitRows {
  readonly schema: Schema;
  readonly #signal: AbortSignal;
  readonly #cancelled: () => boolean;
  rows = 0;
  readonly spans: DeviceSpan[] = [];
  /** The end of the last split. */
  end: SplitEnd | null = null;
  #needed: NeededRows | undefined;

  constructor(schema: Schema, signal: AbortSignal, cancelled: () => boolean) {
    [this.schema, this.#signal, this.#cancelled] = [schema, signal, cancelled];
  }

  get context(): ExecutionContext {
    return {
      signal: this.#signal,
      executor: new LocalExecutor([]),
      events: noEvents,
      metrics: new RunMetrics(),
    };
  }

  /** The rows of Arrow streams, in order. `counts`: adds them to the number of rows read. */
  readStreams(schema: Schema, streams: readonly Uint8Array[], counts = true): BatchStream {
    const batches = streams.flatMap((bytes) => batchesOf(bytes, schema));
    const numRows = batches.reduce((sum, batch) => sum + batch.numRows, 0);
    return { ...batchStream(schema, this.#each(batches, counts)), numRows };
  }

  async *#each(batches: readonly RecordBatch[], counts: boolean): AsyncGenerator<RecordBatch> {
    for (const batch of batches) {
      if (this.#cancelled()) throwIfAborted(AbortSignal.abort(), 'read');
      if (counts) this.rows += batch.numRows;
      yield batch;
    }
  }

  /** The rows of splits, in order. `borrowed`: see ReadSplitOptions. */
  readSplits(params: Pick<ReadParams, 'splits' | 'takesFaults'>, borrowed: boolean): BatchStream {
    return {
      ...batchStream(this.schema, this.read(params, borrowed)),
      narrow: (needed) => (this.#needed = needed),
    };
  }

  /** `borrowed`: see ReadSplitOptions. */
  async *read(
    { splits, takesFaults }: Pick<ReadParams, 'splits' | 'takesFaults'>,
    borrowed: boolean,
  ): AsyncGenerator<RecordBatch> {
    for (const split of splits) {
      const [start, before] = [sharedClock(), this.rows];
      const batches = readSplit(split, this.schema, {
        signal: this.#signal,
        takesFaults,
        borrowed,
        waits: true,
        needed: () => this.#needed,
      });
      try {
        for (;;) {
          const next = await batches.next();
          if (next.done) {
            this.end = next.value ?? null;
            break;
          }
          if (this.#cancelled()) throwIfAborted(AbortSignal.abort(), 'read');
          this.rows += next.value.numRows;
          yield next.value;
        }
      } finally {
        await batches.return(undefined);
        this.spans.push(
          fileSpan('reads', split.file, start, { rows: this.rows - before, bytes: split.bytes }),
        );
      }
    }
  }
}

/** The batches of packed rows or of an Arrow stream, as views of its memory; none for an empty array. */
function batchesOf(bytes: Uint8Array, schema: Schema): readonly RecordBatch[] {
  if (bytes.length === 0) return [];
  return isIpc(bytes)
    ? [...openIpc(bytes)].filter(({ numRows }) => numRows > 0)
    : [...unpackedRows(bytes, schema)];
}
