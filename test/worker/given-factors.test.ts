/**
 * Lists of the best items from factors that the parent sends in parts: docs/reference/worker-protocol.md,
 * `model`.
 */
import { tableFromIPC } from 'apache-arrow';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Model, Session } from '../../index.ts';
import { factorFrames } from '../../connectors/model/factor-frames.ts';
import type { JsonObject } from '../../engine/json.ts';
import { WorkerParent } from '../support/worker-parent.ts';
import { stream } from './fed-workers.ts';

const RANK = 5;
const columns = { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' };
let session: Session;
let model: Model;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 1 });
  model = await ALS.spark({ rank: RANK, maxIter: 2, seed: 3 }).fit(
    session.from(tableFromIPC(stream).batches),
  );
});
afterAll(() => session.close());

const open: WorkerParent[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.child.kill();
});

function openWorker(flags: readonly string[] = []): WorkerParent {
  const parent = new WorkerParent({ flags: ['--device', 'cpu', '--workers', '1', ...flags] });
  open.push(parent);
  parent.write(`${JSON.stringify({ protocol: 1, command: 'model' })}\n`);
  return parent;
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

async function asked(parent: WorkerParent, request: JsonObject, payload?: Uint8Array): Promise<JsonObject> {
  return (await parent.ask(request, payload)).answer.header;
}

async function send(parent: WorkerParent, side: Side, rows = 37, some?: number): Promise<void> {
  for (const bytes of parts(side, rows).slice(0, some))
    expect(await asked(parent, { type: 'factors', side, features: RANK }, bytes)).not.toHaveProperty('error');
}

const take = (parent: WorkerParent, features = RANK) =>
  asked(parent, { type: 'model', features, columns, metadata: {} });

async function lists(parent: WorkerParent, n: number) {
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
    const parent = openWorker();
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

  it('are refused with an id that comes twice, and taken when they are sent again', async () => {
    const parent = openWorker();
    await send(parent, 'items');
    await send(parent, 'users');
    await send(parent, 'users');
    expect(await take(parent)).toMatchObject({
      error: { code: 'DATA', message: expect.stringContaining('twice') },
    });
    await send(parent, 'users');
    expect(await lists(parent, 3)).toEqual(await expected(3));
  });

  it('are refused with another number of features', async () => {
    const parent = openWorker();
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
    const parent = openWorker(['--memory-budget', '64MiB']);
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
