import { ENCODE_ROW_GROUPS } from '../../connectors/parquet/encode-row-groups.ts';
import type { TaskScope } from '../../cpu/handler.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import { joinStreams, RowStream } from '../../engine/stream/ipc-bytes.ts';
import { isPackable } from '../../engine/stream/packed-rows.ts';
import type { PortableOperator } from '../../engine/stream/operator.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';
import { type BatchStream, originOf } from '../../engine/stream/stream.ts';
import { rowsOfParts, partOfRows, PartRows } from '../../operators/exchange/divide-rows.ts';
import { type ExchangeParams, partitionsOf } from '../../operators/exchange/exchange.ts';
import { type ChainOperator, chainOperatorFrom, runChain } from '../../operators/pipeline/operator-chain.ts';
import type { ReadRowsParams, ReadRowsValues } from '../../operators/tasks/reading-tasks.ts';
import type { KernelTasks, OutcomeOf } from '../../operators/tasks/tasks.ts';
import { type SplitRows, whileWanted } from './split-rows.ts';

/** See `read-rows` of KernelTasks. */
export async function readRowsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  return whileWanted(scope, async (source) => {
    const params = scope.params as ReadRowsParams;
    const operators = await Promise.all(params.operators.map(madeOf));
    const keepsBatches = operators.some((operator) => 'keepsBatches' in operator && operator.keepsBatches);
    const parts = params.parts.map(([input, piece]) => streamOf(scope, `parts.${input}`, piece));
    const rows =
      parts.length > 0 ? source.readStreams(source.schema, parts) : source.readSplits(params, !keepsBatches);
    const stream = runChain(operators, rows, othersOf(scope, params, source), source.context);
    const { exchange } = params;
    if (exchange === undefined) return collect(params, source, stream);
    const bounds = scope.hasInput('bounds') ? streamOf(scope, 'bounds', 0) : undefined;
    return divide(exchange, source, stream, bounds);
  });
}

function streamOf(scope: TaskScope, name: string, piece: number): Uint8Array {
  return scope.piece(name, piece) as Uint8Array;
}

/** The second inputs of joins. */
function othersOf(scope: TaskScope, { others }: ReadRowsParams, source: SplitRows): BatchStream[] {
  return others.map(({ columns, parts, name }) => {
    const { schema } = openIpc(streamOf(scope, `others.${columns}`, 0));
    const streams = parts.map(([input, piece]) => streamOf(scope, `others.${input}`, piece));
    return { ...source.readStreams(schema, streams, false), ...(name && { identity: name }) };
  });
}

/** Divides the rows among the parts of an exchange. */
async function divide(
  params: ExchangeParams,
  source: SplitRows,
  stream: BatchStream,
  bounds: Uint8Array | undefined,
): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const streams = Array.from({ length: params.parts }, (): PartRows | undefined => undefined);
  const packs = isPackable(stream.schema);
  const partOf = partOfRows(params, stream.schema, bounds);
  for await (const batch of stream)
    for (const piece of rowsOfParts(batch, partOf(batch), params.parts))
      (streams[piece.part] ??= new PartRows(stream.schema, packs)).add(piece);
  const { rows, end, spans } = source;
  const bytes = streams.map((own) => own?.finish() ?? 0);
  const firsts = partitionsOf(bytes);
  const partitions = firsts.map((first, number): [string, Partition] => {
    const own = streams.slice(first, firsts[number + 1]);
    const { bytes: joined, ends } = joinStreams(own);
    const columns = { bytes: joined };
    return [`divided.${number}`, { layout: 'arrow-stream', rows: rowsOf(own), columns, ends }];
  });
  return {
    rows,
    spans,
    bytesDown: bytes.reduce((sum, own) => sum + own, 0),
    values: { rows, end, complete: true, origins: [], divided: { rows: rowsOf(streams), bytes, firsts } },
    partitions: Object.fromEntries(partitions),
  };
}

function rowsOf(streams: readonly (PartRows | undefined)[]): number {
  return streams.reduce((sum, own) => sum + (own?.rows ?? 0), 0);
}

async function collect(
  params: ReadRowsParams,
  source: SplitRows,
  stream: BatchStream,
): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const kept = new RowStream(stream.schema, true, params.maximumBytes);
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
    values: { rows, end, complete, origins },
    partitions: { rows: { layout: 'arrow-stream', rows, columns: { bytes, kept: joined(left) } } },
  };
}

/**
 * Creates an operator from its plain form, including operators of connectors/, which operators/ may not
 * import.
 */
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
