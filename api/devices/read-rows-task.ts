import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import type { TaskScope } from '../../cpu/handler.ts';
import { ENCODE_ROW_GROUPS } from '../../connectors/parquet/encoded-groups.ts';
import type { Operator, PortableOperator } from '../../engine/stream/operator.ts';
import { sharedArray } from '../../engine/partition.ts';
import { batchStream, originOf } from '../../engine/stream/stream.ts';
import { operatorFrom } from '../../operators/pipeline/portable.ts';
import type { ReadRowsParams, ReadRowsValues } from '../../operators/tasks/reading-tasks.ts';
import type { KernelTasks, OutcomeOf } from '../../operators/tasks/tasks.ts';
import { type SplitRows, whileWanted } from './split-rows.ts';

/** See `read-rows` of ReadingTasks. */
export async function readRowsTask(scope: TaskScope): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  return whileWanted(scope, (rows) => collect(scope.params as ReadRowsParams, rows));
}

async function collect(
  params: ReadRowsParams,
  source: SplitRows,
): Promise<OutcomeOf<KernelTasks['read-rows']>> {
  const operators = await Promise.all(params.operators.map(madeOf));
  const stream = operators.reduce(
    (input, operator) => operator.execute(input, source.context),
    batchStream(source.schema, source.read(params, true)),
  );
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
    values: { rows, end, complete, origins },
    partitions: { rows: { layout: 'arrow-stream', rows, columns: { bytes, kept: joined(left) } } },
  };
}

/** Makes an operator from its plain form, operators of connectors/ too, which operators/ may not import. */
async function madeOf(portable: PortableOperator): Promise<Operator> {
  if (portable.operator !== ENCODE_ROW_GROUPS) return operatorFrom(portable);
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
