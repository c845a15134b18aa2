/** Entry point of a thread that loads one model and sends it to its parent. */
import type { Vector } from 'apache-arrow';
import { parentPort, workerData } from 'node:worker_threads';
import { serializeError } from '../../engine/errors.ts';
import { sentView } from '../../engine/threads/wide-views.ts';
import { type IdColumn, idTypeOf, joinIds } from './id-column.ts';
import type { LoadReply } from './load-in-thread.ts';
import { loadModel } from './model-store.ts';
import { shared } from './write-factors.ts';

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
  if (ids.type === 'utf8') return { ...ids, offsets: shared(ids.offsets), bytes: shared(ids.bytes) };
  return { ...ids, values: shared(ids.values) } as IdColumn;
}

parentPort?.postMessage(await load(workerData as string), []);
