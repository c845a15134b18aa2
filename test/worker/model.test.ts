/** One model that a worker holds for its parent: docs/reference/worker-protocol.md, the command `model`. */
import { tableFromIPC } from 'apache-arrow';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, beforeAll } from 'vitest';
import { frameHead } from '../../cli/worker/serve-process.ts';
import type { JsonObject } from '../../engine/json.ts';
import { ALS, Session, type Model } from '../../index.ts';
import { type Frame, rowsOf, WorkerHere, WorkerParent } from '../support/worker-parent.ts';
import { rows, stream } from './fed-workers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { factorFrames } from '../../connectors/model/factor-frames.ts';
import { cpuSession } from '../support/cpu-session.ts';

const folder = temporaryFolder();

const open: (WorkerHere | WorkerParent)[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** A worker that holds a model or waits for one. */
class ModelParent {
  readonly worker: WorkerHere | WorkerParent;

  constructor(worker: WorkerHere | WorkerParent = new WorkerHere()) {
    this.worker = worker;
    open.push(worker);
    worker.open({ command: 'model' });
  }

  /** Sends a request, with a stream of ratings if it has one; returns its frames, the answer last. */
  async ask(request: JsonObject, bytes?: Uint8Array, payload?: Uint8Array): Promise<readonly Frame[]> {
    const from = this.worker.frames.length;
    const id = this.worker.request(request, payload);
    if (bytes !== undefined) {
      for (let at = 0; at < bytes.length; at += 10_000) this.#send(id, bytes.subarray(at, at + 10_000));
      this.#send(id, new Uint8Array(0));
    }
    await this.worker.frame('answer', from);
    return this.worker.frames.slice(from).filter(({ header }) => header.id === id);
  }

  async answer(request: JsonObject, bytes?: Uint8Array, payload?: Uint8Array): Promise<JsonObject> {
    return (await this.ask(request, bytes, payload)).at(-1)?.header ?? {};
  }

  #send(id: number, payload: Uint8Array): void {
    this.worker.write(frameHead({ type: 'bytes', id }, payload.length));
    this.worker.write(payload);
  }
}

const params = { rank: 4, maxIter: 3, seed: 2 };
const training = { type: 'train', algorithm: 'als', params, rows };

/** The rows of frames `lists`: users, items, scores. */
function listsOf(frames: readonly Frame[]): readonly (readonly number[])[] {
  const tables = frames.filter(({ header }) => header.type === 'lists').map(({ payload }) => payload);
  return tables.flatMap((payload) =>
    tableFromIPC(payload)
      .toArray()
      .map((row) => Object.values(row as Record<string, number>)),
  );
}

async function withModel<T>(work: (model: Awaited<ReturnType<ALS['fit']>>, session: Session) => Promise<T>) {
  const session = await cpuSession({ workers: 1 });
  return work(await new ALS(params).fit(session.from(tableFromIPC(stream).batches)), session);
}

describe('a worker with a model', () => {
  it('trains as the library does, and answers about the model until the end', async () => {
    const parent = new ModelParent(new WorkerParent());
    const frames = await parent.ask(training, stream);
    expect(frames.at(-1)?.header).toMatchObject({
      model: { rank: 4, features: 6, columns: { user: 'user' } },
    });
    const report = frames.find(({ header }) => header.type === 'report');
    expect(report?.header).toMatchObject({ ratings: rows, users: 120, items: 70 });
    const expected = await withModel(async (model, session) => ({
      factors: [...model.userArrays.values],
      lists: await session.from(await batchesOf(model.recommendForUsers([1, 3], 4))).count(),
      best: (await model.recommend(1, 4)).items.map(({ item }) => item),
      similar: (await model.similar(1, 3)).similar.map(({ item }) => item),
    }));
    const users = frames.filter(({ header }) => header.type === 'factors' && header.side === 'users');
    expect([...rowsOf(users).values()].flat()).toEqual(expected.factors);
    const lists = listsOf(await parent.ask({ type: 'recommend', users: [1, 3], n: 4 }));
    expect(lists.length).toBe(expected.lists);
    expect(lists.filter(([user]) => user === 1).map(([, , item]) => item)).toEqual(expected.best);
    const similar = listsOf(await parent.ask({ type: 'similar', side: 'items', ids: [1], n: 3 }));
    expect(similar.map(([, , item]) => item)).toEqual(expected.similar);
    expect(await parent.answer({ type: 'data', name: 'r' }, stream)).toMatchObject({ rows });
    const { metrics } = await parent.answer({ type: 'evaluate', ratings: 'r' });
    expect(metrics).toMatchObject({ pairs: rows, coldPairs: 0 });
    const rest = listsOf(await parent.ask({ type: 'recommend', users: [1], n: 70, exclude: 'r' }));
    expect(rest.length).toBeLessThan(70);
    parent.worker.request({ type: 'end' });
    expect((await parent.worker.ended).code).toBe(0);
  });

  it('takes the model that another one has sent, and saves it', async () => {
    const [first, second] = [new ModelParent(), new ModelParent()];
    const frames = await first.ask(training, stream);
    const head = frames.at(-1)?.header.model as JsonObject;
    for (const { header, payload } of frames) {
      const { type, side, name } = header;
      if (type === 'factors') await second.answer({ type, side, features: 6 }, undefined, payload);
      if (type === 'numbers') await second.answer({ type, side, name }, undefined, payload);
    }
    expect(await second.answer({ ...head, type: 'model' })).not.toHaveProperty('error');
    const request = { type: 'recommend', users: 'all', n: 5 };
    expect(listsOf(await second.ask(request))).toEqual(listsOf(await first.ask(request)));
    const path = join(folder, 'sent');
    expect(await second.answer({ type: 'save', path })).not.toHaveProperty('error');
    expect(existsSync(join(path, 'userMeans'))).toBe(true);
    expect(await second.answer({ type: 'save', path })).toMatchObject({ error: { code: 'USAGE' } });
    const loaded = await first.ask({ type: 'load', path });
    expect(loaded.at(-1)?.header).toMatchObject({ model: { rank: 4, meanRating: head.meanRating } });
  });

  it('answers errors of a request with their code, and goes on', async () => {
    const parent = new ModelParent();
    const errorOf = async (request: JsonObject, bytes?: Uint8Array) =>
      ((await parent.answer(request, bytes)).error as JsonObject | undefined)?.message;
    expect(await errorOf({ type: 'recommend', users: [1], n: 3 })).toMatch('the worker holds no model');
    expect(await errorOf({ ...training, algorithm: 'svd' }, stream)).toMatch('algorithm must be als or sgd');
    expect(await errorOf({ ...training, params: { rnak: 3 } }, stream)).toMatch('rnak');
    expect(await errorOf({ ...training, rows: 5 }, stream)).toMatch('the request says 5');
    expect(await errorOf({ type: 'evaluate', ratings: 'x' })).toMatch('the worker holds no rows');
    expect(await errorOf({ type: 'dance' })).toMatch('unknown request dance');
    expect(await errorOf({ type: 'model', features: 4 })).toMatch('users of the model are missing');
    expect(await errorOf(training, stream)).toBe(undefined);
    expect(await errorOf({ type: 'similar', side: 'items', ids: [-4], n: 3 })).toMatch('no item -4');
  });

  it('ends when stdin ends, idle and in a training', async () => {
    const idle = new ModelParent(new WorkerParent());
    await idle.worker.frame('device');
    idle.worker.close();
    expect((await idle.worker.ended).code).toBe(130);
    const busy = new ModelParent();
    void busy.ask({ ...training, params: { ...params, maxIter: 1e6 } }, stream).catch(() => {});
    await busy.worker.frame('iteration');
    busy.worker.close();
    expect((await busy.worker.ended).code).toBe(130);
  });
});

async function batchesOf<T>(dataset: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const batch of dataset) found.push(batch);
  return found;
}

describe('a model of factors that the parent sends', () => {
  const RANK = 5;
  const columns = { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' };
  let session: Session;
  let model: Model;
  beforeAll(async () => {
    session = await cpuSession({ workers: 1 });
    model = await ALS.spark({ rank: RANK, maxIter: 2, seed: 3 }).fit(
      session.from(tableFromIPC(stream).batches),
    );
  });

  const open: (WorkerHere | WorkerParent)[] = [];
  afterEach(() => {
    for (const one of open.splice(0)) one.kill();
  });

  function openWorker<Worker extends WorkerHere | WorkerParent>(worker: Worker): Worker {
    open.push(worker);
    worker.open({ command: 'model' });
    return worker;
  }

  type Side = 'users' | 'items';

  /** Rows of a side as factor streams of at most `rows` rows, in another order than by id. */
  function parts(side: Side, rows: number): Uint8Array[] {
    const { ids, values } = side === 'users' ? model.userArrays : model.itemArrays;
    const all: Uint8Array[] = [];
    for (let from = 0; from < ids.length; from += rows) {
      const some = Int32Array.from(ids.slice(from, from + rows) as Int32Array);
      const factors = values.slice(from * RANK, (from + some.length) * RANK);
      for (const { bytes } of factorFrames({ type: 'int32', values: some }, factors, RANK))
        all.push(bytes.slice());
    }
    return all.toReversed();
  }

  async function asked(
    parent: WorkerHere | WorkerParent,
    request: JsonObject,
    payload?: Uint8Array,
  ): Promise<JsonObject> {
    return (await parent.ask(request, payload)).answer.header;
  }

  async function send(
    parent: WorkerHere | WorkerParent,
    side: Side,
    rows = 37,
    some?: number,
  ): Promise<void> {
    for (const bytes of parts(side, rows).slice(0, some))
      expect(await asked(parent, { type: 'factors', side, features: RANK }, bytes)).not.toHaveProperty(
        'error',
      );
  }

  const take = (parent: WorkerHere | WorkerParent, features = RANK) =>
    asked(parent, { type: 'model', features, columns, metadata: {} });

  async function lists(parent: WorkerHere | WorkerParent, n: number) {
    expect(await take(parent)).not.toHaveProperty('error');
    const from = parent.frames.length;
    const { rows: count } = await asked(parent, { type: 'recommend', users: 'all', n });
    const rows = parent.frames
      .slice(from)
      .filter(({ header }) => header.type === 'lists')
      .flatMap(({ payload }) => tableFromIPC(payload).toArray())
      .map((row) => ({ ...row.toJSON() }));
    expect(count).toBe(rows.length);
    return rows;
  }

  const expected = async (n: number) =>
    (await model.recommendForAllUsers(n).collect()).toArray().map((row) => ({ ...row.toJSON() }));

  describe('factors in parts, in any order', () => {
    it('give the lists of recommendForAllUsers, and others after other users or items', async () => {
      const parent = openWorker(new WorkerHere());
      await send(parent, 'items');
      await send(parent, 'users');
      expect(await lists(parent, 7)).toEqual(await expected(7));
      await send(parent, 'users', 50, 1);
      const some = await lists(parent, 3);
      const users = new Set(some.map(({ user }) => user as number));
      expect(users.size).toBe(20);
      expect(some).toEqual((await expected(3)).filter(({ user }) => users.has(user as number)));
      await send(parent, 'items', 1000);
      await send(parent, 'users', 1000);
      expect(await lists(parent, 3)).toEqual(await expected(3));
    });

    it('are refused with an id that comes twice or another number of features, and taken when they are sent again', async () => {
      const parent = openWorker(new WorkerHere());
      await send(parent, 'items');
      await send(parent, 'users');
      await send(parent, 'users');
      expect(await take(parent)).toMatchObject({
        error: { code: 'DATA', message: expect.stringContaining('twice') },
      });
      await send(parent, 'users');
      expect(await lists(parent, 3)).toEqual(await expected(3));
      const [users] = parts('users', 1000);
      const request = { type: 'factors', side: 'users', features: RANK + 1 };
      expect(await asked(parent, request, users)).toMatchObject({
        error: { code: 'DATA', message: expect.stringContaining('the rank is 6') },
      });
      await send(parent, 'users');
      await send(parent, 'items');
      expect(await take(parent, RANK + 1)).toMatchObject({
        error: { code: 'DATA', message: expect.stringContaining('the factors of the users are not 6') },
      });
    });

    it('are refused if they take more than a third of the memory', async () => {
      const parent = openWorker(
        new WorkerParent({ flags: '--device cpu --workers 1 --memory-budget 64MiB'.split(' ') }),
      );
      const rows = 6000;
      const ids = Int32Array.from({ length: rows }, (_, row) => row);
      const [first] = factorFrames({ type: 'int32', values: ids }, new Float32Array(rows * 1000), 1000);
      const request = { type: 'factors', side: 'users', features: 1000 };
      expect(await asked(parent, request, first.bytes)).not.toHaveProperty('error');
      expect(await asked(parent, request, first.bytes)).toMatchObject({
        error: { code: 'CAPACITY', message: expect.stringContaining('the factors take about') },
      });
    });
  });
});
