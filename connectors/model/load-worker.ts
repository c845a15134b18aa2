/** Entry point of a thread that loads one model and sends it to its parent. */
import type { Vector } from 'apache-arrow';
import { parentPort, workerData } from 'node:worker_threads';
import { serializeError } from '../../engine/errors.ts';
import { sentView } from '../../engine/threads/wide-views.ts';
import { type IdColumn, idTypeOf, joinIds } from './id-column.ts';
import type { LoadReply } from './load-in-thread.ts';
import { loadModel } from './model-store.ts';

async function load(directory: string): Promise<LoadReply> {
  try {
    const { userIds, itemIds, userFactors, itemFactors, ...model } = await loadModel(directory);
    return {
      model: {
        ...model,
        userFactors: sentView(userFactors),
        itemFactors: sentView(itemFactors),
        users: sharedIds(userIds),
        items: sharedIds(itemIds),
      },
    };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

/** Ids in shared memory. */
function sharedIds({ type, data }: Vector): IdColumn {
  const ids = joinIds(idTypeOf(type) ?? 'utf8', data);
  if (ids.type === 'utf8')
    return { type: 'utf8', offsets: shared(Int32Array, ids.offsets), bytes: shared(Uint8Array, ids.bytes) };
  return ids.type === 'int32'
    ? { type: 'int32', values: shared(Int32Array, ids.values) }
    : { type: 'int64', values: shared(BigInt64Array, ids.values) };
}

function shared<T extends Int32Array | Uint8Array | BigInt64Array>(
  type: { new (buffer: SharedArrayBuffer): T; readonly BYTES_PER_ELEMENT: number },
  values: T,
): T {
  const copy = new type(new SharedArrayBuffer(values.byteLength));
  copy.set(values as never);
  return copy;
}

parentPort?.postMessage(await load(workerData as string), []);
