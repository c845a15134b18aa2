import { formatCount } from '../../engine/format.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import type { EventSink } from '../../index.ts';
import { reportError } from '../report/report-error.ts';
import type { AddedRows } from './added-rows.ts';
import { isLoopback } from './check-head.ts';
import { loadFastify } from './load-fastify.ts';
import { loadModel, type ModelData, ServedModels } from './loaded-model.ts';
import { Metrics } from './metrics.ts';
import { openServer, type ServerOptions } from './open-server.ts';
import { folderState, Reloading } from './reloading.ts';

export interface ServeOptions extends Omit<ServerOptions, 'onFailure'> {
  readonly data: Omit<ModelData, 'signal'>;
  readonly pollMilliseconds: number;
  /** Fires when the server must end. */
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
  readonly onHangup: ((handler: () => void) => void) | undefined;
}

export interface Served {
  readonly address: string;
  readonly requests: number;
  readonly seconds: number;
}

/** Serves a model until the signal fires and the running requests are answered. */
export async function serveModel(options: ServeOptions): Promise<Served> {
  const { signal, onEvent, onHangup, pollMilliseconds } = options;
  const data = { ...options.data, signal };
  const fastify = await loadFastify();
  const state = await folderState(data.folder);
  const metrics = new Metrics();
  // V8 does not count shared memory, so that it would keep some dozen replaced models.
  const models = new ServedModels(await loadModel(data), () => setImmediate(collectGarbage));
  // With the time, since a repeated warning is printed once.
  const log = (type: 'note' | 'warning') => (text: string) =>
    onEvent({ type, text: `${new Date().toISOString()} ${text}` });
  const [note, warn] = [log('note'), log('warning')];
  const onFailure = (error: unknown) => warn(reportError(error).text);
  const server = await openServer(fastify, models, metrics, { ...options, onFailure });
  if (options.token === undefined && !isLoopback(server.host))
    warn(`anyone who reaches ${options.host} may ask: the server has no token. Give it one by --token-file`);
  const load = (added: AddedRows) => loadModel(data, added);
  const { folder } = data;
  const reloading = new Reloading(models, state, { folder, pollMilliseconds, load, metrics, note, warn });
  onHangup?.(() => void reloading.reload());
  const { model, version } = models.current;
  note(
    `serving ${folder} at ${server.address}: model ${version}, ` +
      `${formatCount(model.userCount)} users, ${formatCount(model.itemCount)} items`,
  );
  const start = performance.now();
  await fired(signal);
  await Promise.all([server.close(), reloading.close()]);
  await models.close();
  const seconds = (performance.now() - start) / 1000;
  return { address: server.address, requests: metrics.total, seconds };
}

function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
