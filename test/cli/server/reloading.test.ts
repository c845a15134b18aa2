/** The model is replaced under running requests. */
import { execFileSync } from 'node:child_process';
import { cpSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { loadModel, type LoadedModel, ServedModels } from '../../../cli/server/loaded-model.ts';
import { folderState } from '../../../cli/server/reloading.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { everyNth } from '../../support/deep.ts';
import {
  closeAll,
  numbers,
  type RunningServer,
  saveModel,
  scratch,
  session,
  startServer,
} from './running-server.ts';

afterAll(closeAll);

const OK = 'factorflow_reloads_total{outcome="ok"}';
const FAILED = 'factorflow_reloads_total{outcome="failed"}';

/** Waits until a metric has reached a value. */
async function reaches(server: RunningServer, name: string, value: number): Promise<void> {
  while ((await server.metric(name)) < value) await pause(20);
}

async function bestScore(server: RunningServer) {
  const { status, body } = await server.get('/recommend/1?n=1');
  return { status, score: (body as { items: { score: number }[] }).items[0].score };
}

/** Sends requests until `stop` is called, which gives their statuses and the scores of the best item. */
function load(server: RunningServer) {
  const stopped = new AbortController();
  const statuses = new Set<number>();
  const scores = new Set<number>();
  const client = async () => {
    while (!stopped.signal.aborted) {
      const { status, score } = await bestScore(server);
      statuses.add(status);
      scores.add(score);
      await pause(2);
    }
  };
  const clients = Array.from({ length: 2 }, client);
  return async () => {
    stopped.abort();
    await Promise.all(clients);
    return { statuses: [...statuses], scores: [...scores].sort((a, b) => a - b) };
  };
}

it('a new model is found by polling, and no request fails meanwhile', async () => {
  const folder = await saveModel('polled');
  const server = await startServer(folder, { pollMilliseconds: 5 });
  const stop = load(server);
  const { body: before } = await server.get('/model');
  for (const level of [2, 3]) {
    await saveModel('polled', numbers, level);
    await reaches(server, OK, level - 1);
  }
  while ((await bestScore(server)).score !== 12) await pause(20);
  const { statuses, scores } = await stop();
  expect(statuses).toEqual([200]);
  for (const score of scores) expect([4, 8, 12]).toContain(score);
  expect((await server.get('/model')).body).not.toEqual(before);
  await server.end();
});

it('SIGHUP loads the model again, changed or not, and requests of many reloads all succeed', async () => {
  const server = await startServer(await saveModel('hangup'));
  const stop = load(server);
  for (let reload = 1; reload <= 2; reload++) {
    server.hangup();
    await reaches(server, OK, reload);
  }
  expect(await stop()).toEqual({ statuses: [200], scores: [4] });
  // A load that the end of the server cancels is no failure.
  server.hangup();
  await server.end();
  expect(server.events.filter(({ type }) => type === 'warning')).toEqual([]);
});

const broken: Readonly<Record<string, (folder: string) => void>> = {
  'without metadata': (folder) => rmSync(join(folder, 'metadata'), { recursive: true }),
  'with metadata of another program': (folder) =>
    writeFileSync(join(folder, 'metadata/part-00000'), '{"class":"org.example.Other","rank":3}\n'),
  'with a file cut off': (folder) => truncateSync(join(folder, 'itemFactors/part-00000.parquet'), 100),
  'without factors': (folder) => rmSync(join(folder, 'userFactors'), { recursive: true }),
  'that is gone': (folder) => rmSync(folder, { recursive: true }),
};

it.each(everyNth(Object.keys(broken), 3))(
  'a model %s changes nothing, and a good one is taken later',
  async (name) => {
    const folder = await saveModel('broken');
    const server = await startServer(folder);
    const stop = load(server);
    const { body: before } = await server.get('/model');
    broken[name](folder);
    server.hangup();
    await reaches(server, FAILED, 1);
    expect(await server.metric('factorflow_reload_failing')).toBe(1);
    expect((await server.get('/model')).body).toEqual(before);
    expect(server.events).toContainEqual({
      type: 'warning',
      text: expect.stringMatching(/^\d{4}-.* the model \w{12} answers on$/),
    });
    await saveModel('broken', numbers, 2);
    server.hangup();
    await reaches(server, OK, 1);
    expect(await server.metric('factorflow_reload_failing')).toBe(0);
    expect((await stop()).statuses).toEqual([200]);
    await server.end();
    rmSync(folder, { recursive: true });
  },
);

it('a folder that is broken for a while is looked at until it is whole', async () => {
  const folder = await saveModel('slow-copy');
  const server = await startServer(folder, { pollMilliseconds: 5 });
  const next = await saveModel('slow-copy-next', numbers, 5);
  const copy = join(scratch, 'half');
  cpSync(next, copy, { recursive: true });
  rmSync(join(copy, 'userFactors'), { recursive: true });
  rmSync(folder, { recursive: true });
  renameSync(copy, folder);
  await reaches(server, FAILED, 1);
  cpSync(join(next, 'userFactors'), join(folder, 'userFactors'), { recursive: true });
  await reaches(server, OK, 1);
  expect((await server.get('/recommend/1?n=1')).body).toMatchObject({ items: [{ score: 20 }] });
  await server.end();
});

it('a pipe in the folder fails the load, and does not block it', async () => {
  const folder = await saveModel('with-pipe');
  const pipe = join(folder, 'metadata', 'part-pipe');
  execFileSync('mkfifo', [pipe]);
  await expect(loadModel({ folder, session } as never)).rejects.toThrow('part-pipe');
});

it('a signal ends a server that loads its first model', async () => {
  const ending = new AbortController();
  ending.abort();
  const starting = startServer(await saveModel('ended'), { ending });
  await expect(starting).rejects.toThrow(CancelledError);
});

it('a model that is replaced during its load is not named after the other one', async () => {
  const folder = await saveModel('replaced');
  const readNames = async () => void (await saveModel('replaced', numbers, 2));
  const load = loadModel({ folder, session, index: 'auto', readNames } as never);
  await expect(load).rejects.toThrow('the model was replaced while it was loaded');
});

it('the state of a folder changes with each of its files', async () => {
  const folder = await saveModel('state');
  const first = await folderState(folder);
  expect(await folderState(folder)).toBe(first);
  writeFileSync(join(folder, 'metadata/part-00001'), '');
  expect(await folderState(folder)).not.toBe(first);
  expect(await folderState(join(folder, 'missing'))).toBeUndefined();
});

it('a replaced model is closed after its last request', async () => {
  const closed: string[] = [];
  const named = (version: string) =>
    ({ version, model: { close: async () => void closed.push(version) } }) as unknown as LoadedModel;
  let released = 0;
  const models = new ServedModels(named('old'), () => released++);
  const gate = Promise.withResolvers<void>();
  const running = models.use(async ({ version }) => {
    await gate.promise;
    return version;
  });
  await models.reload(async () => named('new'));
  expect(await models.use(async ({ version }) => version)).toBe('new');
  expect([closed, released]).toEqual([[], 0]);
  gate.resolve();
  expect(await running).toBe('old');
  await models.close();
  expect([closed.sort(), released]).toEqual([['new', 'old'], 1]);
});
