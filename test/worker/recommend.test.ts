/**
 * The command `worker` as a parent process sees it: docs/reference/worker-protocol.md, lists of the best
 * items.
 */
import { type Table, tableFromIPC } from 'apache-arrow';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Model, Session } from '../../index.ts';
import { factorFrames } from '../../connectors/model/factor-frames.ts';
import { WorkerParent } from '../support/worker-parent.ts';
import { errorOf, stream } from './fed-workers.ts';

const RANK = 5;
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

function recommender(params: object = { rank: RANK }, flags?: readonly string[]): WorkerParent {
  const parent = new WorkerParent(flags === undefined ? {} : { flags });
  open.push(parent);
  parent.write(`${JSON.stringify({ protocol: 1, command: 'recommend', params })}\n`);
  return parent;
}

/** Rows of a side as factor streams of at most `rows` rows, in another order than by id. */
function parts(side: 'users' | 'items', rows: number): Uint8Array[] {
  const { ids, values } = side === 'users' ? model.userArrays : model.itemArrays;
  const all: Uint8Array[] = [];
  for (let from = 0; from < ids.length; from += rows) {
    const some = Int32Array.from(ids.slice(from, from + rows) as Int32Array);
    const factors = values.slice(from * RANK, (from + some.length) * RANK);
    all.push(...[...factorFrames({ type: 'int32', values: some }, factors, RANK)].map(({ bytes }) => bytes));
  }
  return all.toReversed();
}

async function send(parent: WorkerParent, side: 'users' | 'items', rows = 37): Promise<void> {
  for (const bytes of parts(side, rows)) await parent.ask({ type: 'factors', side }, bytes);
}

const rowsOf = (tables: readonly Table[]) =>
  tables.flatMap((table) => table.toArray().map((row) => ({ ...row.toJSON() })));

async function lists(parent: WorkerParent, n: number) {
  const from = parent.frames.length;
  const { answer } = await parent.ask({ type: 'recommend', n });
  const frames = parent.frames.slice(from).filter(({ header }) => header.type === 'lists');
  const rows = rowsOf(frames.map(({ payload }) => tableFromIPC(payload)));
  expect(answer.header.rows).toBe(rows.length);
  return rows;
}

async function expected(n: number) {
  return rowsOf([await model.recommendForAllUsers(n).collect()]);
}

describe('recommend', () => {
  it('gives the lists of recommendForAllUsers, and others for other users afterwards', async () => {
    const parent = recommender();
    await send(parent, 'items');
    await send(parent, 'users');
    expect(await lists(parent, 7)).toEqual(await expected(7));
    await send(parent, 'users', 1000);
    expect(await lists(parent, 3)).toEqual(await expected(3));
    await send(parent, 'items', 1000);
    await send(parent, 'users', 1000);
    expect(await lists(parent, 3)).toEqual(await expected(3));
    parent.request({ type: 'end' });
    const { code, frames } = await parent.ended;
    expect([code, frames.at(-1)?.header.type]).toEqual([0, 'done']);
  });

  it('gives nothing for no users and for no items', async () => {
    const parent = recommender();
    expect(await lists(parent, 3)).toEqual([]);
    await send(parent, 'users');
    expect(await lists(parent, 3)).toEqual([]);
  });

  it.each([
    ['another rank', { rank: RANK + 1 }, 2, 'the rank is 6'],
    ['no rank', {}, 2, 'rank must be a whole number from 1 to 4096'],
    ['a parameter', { rank: RANK, maxIter: 1 }, 2, 'unknown parameter maxIter'],
    ['no count', { rank: RANK }, 0, 'n must be a whole number from 1 to 1,000, got 0'],
  ])('refuses %s', async (_, params, n, message) => {
    const parent = recommender(params);
    for (const side of ['users', 'items'] as const)
      for (const bytes of parts(side, 1000)) parent.request({ type: 'factors', side }, bytes);
    parent.request({ type: 'recommend', n });
    const error = errorOf(await parent.ended);
    expect(error.message).toContain(message);
  });

  it('refuses an id that comes twice', async () => {
    const parent = recommender();
    await send(parent, 'users');
    await send(parent, 'users');
    parent.request({ type: 'recommend', n: 1 });
    expect(errorOf(await parent.ended)).toMatchObject({ code: 'DATA', exitCode: 3 });
  });
});
