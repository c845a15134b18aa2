import { type Data, type RecordBatch, Schema } from 'apache-arrow';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { joinData } from '../../../engine/stream/join-data.ts';
import { type BatchStream, batchStream } from '../../../engine/stream/stream.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { columnOf, sameRows } from '../row-operator.ts';
import { windowFunctions } from './window-functions.ts';
import { changes, defaultFrame, partitionKeys, type WindowOptions, WindowRows } from './window-rows.ts';

/** The functions of a window whose frames are whole partitions, and the others. */
export function splitCalls(options: WindowOptions): Record<'whole' | 'others', WindowOptions> {
  const isWhole = ({ call, frame = defaultFrame(options) }: WindowOptions['calls'][number]) =>
    windowFunctions[call].isFramed === true && frame.from === 'unbounded' && frame.to === 'unbounded';
  return {
    whole: { ...options, calls: options.calls.filter(isWhole) },
    others: { ...options, calls: options.calls.filter((one) => !isWhole(one)) },
  };
}

/**
 * Adds the results of functions over whole partitions that may be larger than memory. `rows` gives the sorted rows,
 * which are read twice: the results up to the last row of each partition are those of the whole.
 */
export function wholePartitions(
  options: WindowOptions,
  schema: Schema,
  rows: () => BatchStream,
  ctx: ExecutionContext,
): BatchStream {
  const frame = { unit: 'rows', from: 'unbounded', to: 0 } as const;
  const order =
    options.orderBy.length > 0 ? options.orderBy : options.partitionBy.map((column) => ({ column }));
  const running = { ...options, orderBy: order, calls: options.calls.map((one) => ({ ...one, frame })) };
  return batchStream(new WindowRows(options).outputSchema(schema), withResults());

  async function* withResults(): AsyncGenerator<RecordBatch> {
    const own = new WindowRows(options).outputSchema(schema);
    const results = await resultsOf(running, rows().schema, new WindowRows(running).execute(rows(), ctx));
    const keys = partitionKeys(options, schema);
    let last: RecordBatch | undefined;
    let partition = -1;
    for await (const batch of rows()) {
      if (batch.numRows === 0) continue;
      const positions = Uint32Array.from(changes(keys, batch, last), (isFirst) => (partition += isFirst));
      last = batch.slice(batch.numRows - 1);
      const added = results.map((data) => takeData(data, positions));
      yield sameRows(batch, own, [...batch.data.children, ...added]);
    }
  }
}

/** The values of the last row of each partition, by function. */
async function resultsOf(options: WindowOptions, schema: Schema, rows: BatchStream): Promise<Data[]> {
  const keys = partitionKeys(options, schema);
  const found = options.calls.map((): Data[] => []);
  let last: RecordBatch | undefined;
  const take = (batch: RecordBatch, rows: readonly number[]) => {
    for (const [i, { name }] of options.calls.entries())
      if (rows.length > 0) found[i].push(takeData(columnOf(batch, name), Uint32Array.from(rows)));
  };
  for await (const batch of rows) {
    const flags = changes(keys, batch, last);
    if (last !== undefined && flags[0] === 1) take(last, [0]);
    const ends: number[] = [];
    for (let row = 1; row < flags.length; row++) if (flags[row] === 1) ends.push(row - 1);
    take(batch, ends);
    last = batch.slice(batch.numRows - 1);
  }
  if (last !== undefined) take(last, [0]);
  return found.flatMap((parts) => (parts.length === 0 ? [] : [joinData(parts[0].type, parts)]));
}
