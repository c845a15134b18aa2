import { RecordBatchReader } from 'apache-arrow';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import type { TaskScope } from '../../cpu/handler.ts';
import { ENCODE_ROW_GROUPS } from '../../connectors/parquet/encoded-groups.ts';
import type { PortableOperator } from '../../engine/stream/operator.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { batchStream, type BatchStream, originOf } from '../../engine/stream/stream.ts';
import { divided, partOfRows } from '../../operators/exchange/divide-rows.ts';
import type { ExchangeParams } from '../../operators/exchange/exchange.ts';
import { PartRows } from '../../operators/exchange/part-rows.ts';
import { chainOperatorFrom } from '../../operators/pipeline/portable.ts';
import { type ChainOperator, runChain } from '../../operators/pipeline/run-chain.ts';
import type { ReadRowsParams, ReadRowsValues } from '../../operators/tasks/reading-tasks.ts';
import type { KernelTasks, OutcomeOf } from '../../operators/tasks/tasks.ts';
import { type SplitRows, whileWanted } from './split-rows.ts';

/** See `read-rows` of ReadingTasks. */
export async function readRowsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  return whileWanted(scope, async (source) => {
    const params = scope.params as ReadRowsParams;
    const operators = await Promise.all(params.operators.map(madeOf));
    const keepsBatches = operators.some((operator) => 'keepsBatches' in operator && operator.keepsBatches);
    const rows =
      params.parts > 0
        ? source.readStreams(streamsOf(scope, 'parts', params.parts))
        : source.read(params, !keepsBatches);
    const stream = runChain(
      operators,
      batchStream(source.schema, rows),
      othersOf(scope, params, source),
      source.context,
    );
    const { exchange } = params;
    if (exchange === undefined) return collect(params, source, stream);
    const bounds = scope.hasInput('bounds') ? bytesOf(scope, 'bounds') : undefined;
    return divide(exchange, source, stream, bounds);
  });
}

function bytesOf(scope: TaskScope, name: string): Uint8Array {
  return scope.partition(name).columns.bytes as Uint8Array;
}

function streamsOf(scope: TaskScope, name: string, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) => bytesOf(scope, `${name}.${i}`));
}

/** The other sides of joins: each begins with a stream without rows, which has the columns. */
function othersOf(scope: TaskScope, { others }: ReadRowsParams, source: SplitRows): BatchStream[] {
  const all = streamsOf(
    scope,
    'others',
    others.reduce((sum, { parts }) => sum + parts, 0),
  );
  let at = 0;
  return others.map(({ parts, name }) => {
    const streams = all.slice(at, (at += parts));
    const { schema } = RecordBatchReader.from(streams[0]).open();
    return { ...batchStream(schema, source.readStreams(streams, false)), identity: name };
  });
}

/** The rows by the parts of an exchange. */
async function divide(
  params: ExchangeParams,
  source: SplitRows,
  stream: BatchStream,
  bounds: Uint8Array | undefined,
): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const all = Array.from({ length: params.parts }, (): PartRows | undefined => undefined);
  const partOf = partOfRows(params, stream.schema, bounds);
  for await (const batch of stream)
    for (const { part, rows: own } of divided(batch, partOf(batch), params.parts))
      (all[part] ??= new PartRows(stream.schema)).add(own);
  const partitions = all.map((own): Partition => {
    const { rows: taken, bytes } = own?.takeShared() ?? { rows: 0, bytes: sharedArray(Uint8Array, 0) };
    return { layout: 'arrow-stream', rows: taken, columns: { bytes } };
  });
  const { rows, end, spans } = source;
  const parts = partitions.map((own) => ({ rows: own.rows, bytes: own.columns.bytes.length }));
  const bytesDown = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    rows,
    spans,
    bytesDown,
    values: { rows, end, complete: true, origins: [], parts },
    partitions: Object.fromEntries(partitions.map((partition, part) => [`divided.${part}`, partition])),
  };
}

async function collect(
  params: ReadRowsParams,
  source: SplitRows,
  stream: BatchStream,
): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const kept = new RowStream(stream.schema, true);
  const origins: ReadRowsValues['origins'][number][] = [];
  const left: ArrayLike<number>[] = [];
  let complete = true;
  for await (const batch of stream) {
    const { file, rowGroup, firstRow = 0, kept: taken } = originOf(batch) ?? {};
    origins.push({ file, rowGroup, firstRow, ...(taken && { kept: taken.length }) });
    if (taken) left.push(taken);
    kept.add(batch);
    complete = kept.length <= params.maximumBytes;
    if (!complete) break;
  }
  const bytes = complete ? kept.takeShared() : sharedArray(Uint8Array, 0);
  const { rows, end, spans } = source;
  return {
    rows,
    spans,
    bytesDown: bytes.length,
    values: { rows, end, complete, origins, parts: [] },
    partitions: { rows: { layout: 'arrow-stream', rows, columns: { bytes, kept: joined(left) } } },
  };
}

/** Makes an operator from its plain form, operators of connectors/ too, which operators/ may not import. */
async function madeOf(portable: PortableOperator): Promise<ChainOperator> {
  if (portable.operator !== ENCODE_ROW_GROUPS) return chainOperatorFrom(portable);
  return (await import('../../connectors/parquet/encode-row-groups.ts')).EncodeRowGroups.from(
    portable as never,
  );
}

function joined(parts: readonly ArrayLike<number>[]): Uint32Array {
  const all = sharedArray(
    Uint32Array,
    parts.reduce((sum, { length }) => sum + length, 0),
  );
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
