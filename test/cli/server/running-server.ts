import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { RunSession } from '../../../api/run-session.ts';
import { loadModel } from '../../../cli/server/loaded-model.ts';
import { type ServeOptions, type Served, serveModel } from '../../../cli/server/serve-model.ts';
import { keysOfIds, type Id } from '../../../engine/keys/find-id.ts';
import type { KeyType } from '../../../engine/keys/key-column.ts';
import { Model, type ProgressEvent, Session } from '../../../index.ts';

export const scratch = mkdtempSync(join(tmpdir(), 'factorflow-server-'));
export const session = await Session.create({ device: 'cpu', workers: 2 });

/** Call it after the last test. */
export async function closeAll(): Promise<void> {
  await session.close();
  rmSync(scratch, { recursive: true, force: true });
}

export interface Ids {
  readonly type: KeyType;
  readonly users: readonly Id[];
  readonly items: readonly Id[];
}

export const numbers: Ids = { type: 'int32', users: [1, 2, 3], items: [10, 20, 30, 40] };

/**
 * Saves a model of rank 2: the score of item v for user u is (u + 1) (v + 1) `level`, by positions from 0, so
 * that the last item is the best of each user.
 */
export async function saveModel(name: string, ids: Ids = numbers, level = 1): Promise<string> {
  const side = (count: number, scale: number) => {
    const values = new Float32Array(new SharedArrayBuffer(8 * count));
    for (let row = 0; row < count; row++) values.set([(row + 1) * scale, 0.001 * row * row], 2 * row);
    return values;
  };
  const model = new Model({
    rank: 2,
    users: keysOfIds([...ids.users], ids.type),
    items: keysOfIds([...ids.items], ids.type),
    userFactors: side(ids.users.length, 1),
    itemFactors: side(ids.items.length, level),
    itemCounts: Uint32Array.from(ids.items, (_, position) => Math.max(1, 100 - position)),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    session: session as RunSession,
    metadata: { params: { biases: false, implicitPrefs: false, regParam: 0.1, rank: 2 }, level },
  });
  const folder = join(scratch, name);
  await model.save(folder, { overwrite: true });
  return folder;
}

export interface RunningServer {
  readonly address: string;
  readonly events: ProgressEvent[];
  /** Calls the handler of SIGHUP. */
  hangup(): void;
  /** Asks the server to end, as a signal does. */
  end(): Promise<Served>;
  get(path: string, init?: RequestInit): Promise<{ readonly status: number; readonly body: unknown }>;
  post(path: string, body: unknown): Promise<{ readonly status: number; readonly body: unknown }>;
  metric(name: string): Promise<number>;
}

type Given = Partial<Omit<ServeOptions, 'data' | 'signal' | 'onEvent' | 'onHangup'>> & {
  readonly data?: Partial<Parameters<typeof loadModel>[0]>;
  /** Its signal asks the server to end. */
  readonly ending?: AbortController;
};

export async function startServer(
  folder: string,
  { data, ending = new AbortController(), ...given }: Given = {},
): Promise<RunningServer> {
  const events: ProgressEvent[] = [];
  const { promise: listening, resolve, reject } = Promise.withResolvers<string>();
  let hangup = () => {};
  const onEvent = (event: ProgressEvent) => {
    events.push(event);
    const found = event.type === 'note' ? / at (http:\S+):/.exec(event.text) : null;
    if (found) resolve(found[1]);
  };
  const served = serveModel({
    host: '127.0.0.1',
    port: 0,
    allowHosts: [],
    token: undefined,
    mostRequests: 64,
    bodyBytes: 2 ** 20,
    answerMilliseconds: 60_000,
    receiveMilliseconds: 60_000,
    graceSeconds: 60,
    pollMilliseconds: 0,
    ...given,
    data: {
      folder,
      session,
      index: 'auto',
      readExclude: undefined,
      readFilters: undefined,
      readNames: async () => undefined,
      onEvent,
      ...data,
    },
    signal: ending.signal,
    onEvent,
    onHangup: (handler) => (hangup = handler),
  });
  served.catch(reject);
  const address = await listening;
  return {
    ...clientOf(address),
    address,
    events,
    hangup: () => hangup(),
    end: () => {
      ending.abort();
      return served;
    },
  };
}

/** The calls of a client. */
function clientOf(address: string): Pick<RunningServer, 'get' | 'post' | 'metric'> {
  const get = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`${address}${path}`, init);
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: answer.status, body: isJson ? (JSON.parse(text) as unknown) : text };
  };
  return {
    get,
    post: (path, body) =>
      get(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    metric: async (name) => {
      const text = String((await get('/metrics')).body);
      const line = text.split('\n').find((one) => one.startsWith(`${name} `));
      return Number(line?.split(' ').at(-1));
    },
  };
}

export const errorOf = (code: string, message: RegExp) => ({
  error: { code, message: expect.stringMatching(message) },
});
