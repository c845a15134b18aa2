import { Worker } from 'node:worker_threads';
import { deserializeError, missingFile, type SerializedError } from '../../engine/errors.ts';
import { receivedView, type SentView } from '../../engine/threads/wide-views.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import { type IdColumn, idVector } from './id-column.ts';
import type { StoredModel } from './model-store.ts';

/** A model as one thread sends it to another, with arrays in shared memory. */
export interface LoadedModel extends Omit<
  StoredModel,
  'userIds' | 'itemIds' | 'userFactors' | 'itemFactors'
> {
  readonly users: IdColumn;
  readonly items: IdColumn;
  readonly userFactors: SentView<Float32Array>;
  readonly itemFactors: SentView<Float32Array>;
}

export type LoadReply = { readonly model: LoadedModel } | { readonly error: SerializedError };

/** `loadModel` in a thread of its own, so that the calling thread can answer requests meanwhile. */
export async function loadInThread(directory: string): Promise<StoredModel> {
  const thread = new Worker(workerFile(new URL('./load-worker.js', import.meta.url)), {
    workerData: directory,
  });
  const reply = await new Promise<LoadReply>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', (cause) => reject(missingFile(cause) ?? cause));
    thread.once('exit', (code) => reject(new Error(`the thread that loads the model ended with ${code}`)));
  }).finally(() => void thread.terminate());
  if ('error' in reply) throw deserializeError(reply.error);
  const { users, items, userFactors, itemFactors, ...model } = reply.model;
  return {
    ...model,
    userFactors: receivedView(userFactors),
    itemFactors: receivedView(itemFactors),
    userIds: idVector(users),
    itemIds: idVector(items),
  };
}
