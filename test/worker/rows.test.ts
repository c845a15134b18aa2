/** Many hosts: blocks of rows in several workers, docs/reference/worker-protocol.md. */
import { tableFromIPC } from 'apache-arrow';
import { afterEach, describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, Session } from '../../index.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import { RowTraining } from '../support/row-workers.ts';
import { ratingStream, rowsOf, type Triples, WorkerParent } from '../support/worker-parent.ts';

const triples = numberedRatings(2400);

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

function training(
  params: AlsOptions,
  blocks: number,
  ratings: Triples = triples,
  exchange: 'shuffle' | 'broadcast' = 'shuffle',
): RowTraining {
  const made = new RowTraining({ ...params }, ratings, blocks, { exchange });
  open.push(made);
  return made;
}

/** The training on one host, in this process. */
async function oneHost(params: AlsOptions, ratings: Triples = triples) {
  const session = await Session.create({ device: 'cpu', workers: 1 });
  try {
    const model = await ALS.spark(params).fit(session.from(tableFromIPC(ratingStream(ratings)).batches));
    const map = ({ ids, values, columns }: typeof model.userArrays) =>
      new Map(
        Array.from(ids as Int32Array, (id, row) => [
          Number(id),
          [...values.subarray(row * columns, (row + 1) * columns)],
        ]),
      );
    return {
      users: map(model.userArrays),
      items: map(model.itemArrays),
      last: model.training?.iterations.at(-1),
    };
  } finally {
    await session.close();
  }
}

/** The largest difference of two sets of rows, relative to the largest value. */
function difference(a: Map<number, number[]>, b: Map<number, number[]>): number {
  expect([...a.keys()]).toEqual([...b.keys()]);
  let [most, size] = [0, 0];
  for (const [id, row] of a) {
    row.forEach((value, k) => {
      most = Math.max(most, Math.abs(value - (b.get(id)?.[k] ?? Number.NaN)));
      size = Math.max(size, Math.abs(value));
    });
  }
  return most / size;
}

describe('blocks of explicit ratings', () => {
  it.each([
    [1, 'exactly', { rank: 6, maxIter: 3, seed: 3, regParam: 0.05, solver: 'cholesky' }],
    [
      2,
      'by conjugate gradients, which start from the rows before',
      { rank: 6, maxIter: 3, seed: 3, solver: 'cg', cgSteps: 3 },
    ],
    [3, 'by the solver of each row', { rank: 6, maxIter: 4, seed: 5, regExponent: 0.5 }],
    [3, 'with non-negative factors', { rank: 4, maxIter: 2, nonnegative: true }],
  ] as const)(
    'in %d workers, solved %s, give the factors and the loss of one host',
    async (blocks, _, params) => {
      const expected = await oneHost(params);
      const rows = training(params, blocks);
      await rows.start();
      for (let k = 0; k < params.maxIter; k++) await rows.iterate();
      expect(rows.factors('users')).toEqual(expected.users);
      expect(rows.factors('items')).toEqual(expected.items);
      const { loss, trainRmse } = await rows.loss();
      expect(loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 9);
      expect(trainRmse / (expected.last?.trainRmse ?? 0)).toBeCloseTo(1, 9);
      expect(await rows.end()).toEqual(Array.from({ length: blocks }, () => 0));
    },
  );

  it('of unusual size are trained in the unit of one host', async () => {
    const params = { rank: 4, maxIter: 2, regParam: 1e5 };
    const large = numberedRatings(1500, { scale: 1e8 });
    const expected = await oneHost(params, large);
    const rows = training(params, 2, large);
    await rows.start();
    for (let k = 0; k < 2; k++) await rows.iterate();
    expect(rows.factors('users')).toEqual(expected.users);
    expect((await rows.loss()).loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 9);
  });

  it('may be empty, where a host has no rows', async () => {
    const values = Int32Array.from({ length: 1000 }, (_, id) => id);
    const owners = blocksOfIds({ type: 'int32', values }, 2);
    const firsts = [...values].filter((id) => owners[id] === 0);
    const ofFirst = { ...triples, users: triples.users.map((id) => firsts[id as number]) };
    const params = { rank: 4, maxIter: 2, seed: 1 };
    const expected = await oneHost(params, ofFirst);
    const rows = training(params, 2, ofFirst);
    await rows.start();
    for (let k = 0; k < 2; k++) await rows.iterate();
    expect(rows.factors('users')).toEqual(expected.users);
    expect(rows.factors('items')).toEqual(expected.items);
    expect((await rows.loss()).loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 9);
  });

  it('get the rows that their ratings name, and give the same factors as with whole sides', async () => {
    const params = { rank: 4, maxIter: 2, seed: 1 };
    const sparse = numberedRatings(240);
    const [needed, whole] = [training(params, 3, sparse), training(params, 3, sparse, 'broadcast')];
    for (const rows of [needed, whole]) {
      await rows.start();
      for (let k = 0; k < 2; k++) await rows.iterate();
    }
    expect(needed.factors('users')).toEqual(whole.factors('users'));
    expect(needed.factors('items')).toEqual(whole.factors('items'));
    const owners = blocksOfIds({ type: 'int32', values: Int32Array.from(sparse.users as number[]) }, 3);
    const ofItems = blocksOfIds({ type: 'int32', values: Int32Array.from(sparse.items) }, 3);
    const pairs = new Set(
      sparse.users.flatMap((user, at) => [
        `user ${user} ${ofItems[at]}`,
        `item ${sparse.items[at]} ${owners[at]}`,
      ]),
    );
    expect(needed.rowsSent).toBe(2 * pairs.size);
    const rows = new Set(sparse.users).size + new Set(sparse.items).size;
    expect(whole.rowsSent).toBe(2 * 3 * rows);
    expect(pairs.size).toBeLessThan(2.5 * rows);
  });

  it('of a worker that was killed between two iterations are loaded into another one, and the factors are the same', async () => {
    const params = { rank: 6, maxIter: 4, seed: 1, solver: 'cg' as const };
    const expected = await oneHost(params);
    const rows = training(params, 3);
    await rows.start();
    await rows.iterate();
    await rows.iterate();
    await rows.lose(1);
    await rows.iterate();
    await rows.lose(0);
    await rows.iterate();
    expect(rows.factors('users')).toEqual(expected.users);
    expect(rows.factors('items')).toEqual(expected.items);
  });
});

describe('blocks of implicit data', () => {
  it.each([1, 3])(
    'in %d workers give the factors and the loss of one host within rounding',
    async (blocks) => {
      const params = { rank: 5, maxIter: 3, implicitPrefs: true, alpha: 4, seed: 2 };
      const expected = await oneHost(params);
      const rows = training(params, blocks);
      await rows.start();
      for (let k = 0; k < params.maxIter; k++) await rows.iterate();
      expect(difference(rows.factors('users'), expected.users)).toBeLessThan(1e-4);
      expect(difference(rows.factors('items'), expected.items)).toBeLessThan(1e-4);
      expect((await rows.loss()).loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 5);
    },
  );
});

describe('a session of rows', () => {
  async function begun(params: AlsOptions = { rank: 3 }): Promise<WorkerParent> {
    const worker = new WorkerParent();
    open.push({ kill: () => worker.child.kill('SIGKILL') });
    worker.write(`${JSON.stringify({ protocol: 1, command: 'rows', params })}\n`);
    await worker.frame('device');
    return worker;
  }

  it('tells what it holds, and what is missing', async () => {
    const worker = await begun();
    const sums = { ratings: triples.users.length, squares: 9 * triples.users.length };
    const ask = async (request: Parameters<WorkerParent['ask']>[0], payload?: Uint8Array) =>
      (await worker.ask(request, payload)).answer.header;
    expect(await ask({ type: 'solve', block: 'a', fixed: 0, version: 1, ...sums })).toMatchObject({
      missing: 'block',
    });
    expect(await ask({ type: 'load', block: 'a', side: 'users' }, ratingStream(triples))).toMatchObject({
      ratings: triples.users.length,
    });
    expect(await ask({ type: 'state' })).toMatchObject({
      blocks: { a: { side: 'users', built: false, version: null, fixed: null } },
    });
    expect(await ask({ type: 'build', block: 'a', rows: triples.users.length, blocks: 1 })).toMatchObject({
      rows: 120,
      columns: 70,
      ratings: triples.users.length,
      sends: [120],
    });
    expect(await ask({ type: 'send', block: 'a', version: 0, to: 0 })).toMatchObject({ missing: 'previous' });
    expect(await ask({ type: 'solve', block: 'a', fixed: 0, version: 1, ...sums })).toMatchObject({
      missing: 'fixed',
    });
    expect(await ask({ type: 'gram', block: 'a', version: 0 })).toMatchObject({ missing: 'version' });
    const { factors } = await worker.ask({ type: 'start', block: 'a', version: 0, ...sums });
    expect(factors.map(({ header }) => header)).toMatchObject([
      { side: 'users', first: 0, rows: 120, of: 120 },
    ]);
    const sent = await worker.ask({ type: 'send', block: 'a', version: 0, to: 0 });
    expect(sent.answer.header).toMatchObject({ rows: 120 });
    expect(rowsOf(sent.factors)).toEqual(rowsOf(factors));
    expect(await ask({ type: 'send', block: 'a', version: 1, to: 0 })).toMatchObject({ missing: 'previous' });
    expect(await ask({ type: 'loss', block: 'a', version: 0, fixed: 5 })).toMatchObject({ missing: 'fixed' });
    expect(await ask({ type: 'release', block: 'a' })).toMatchObject({ type: 'answer' });
    expect(await ask({ type: 'state' })).toMatchObject({ blocks: {} });
  });

  it.each([
    ['an unknown request', [{ type: 'fly', block: 'a' }], 2, /unknown request fly/],
    [
      'a block of another number of ratings',
      [{ type: 'build', block: 'a', rows: 5 }],
      3,
      /2,400 ratings arrived, but the block should have 5/,
    ],
    [
      'ratings for a block that is built',
      [
        { type: 'build', block: 'a', rows: 2400 },
        { type: 'load', block: 'a', side: 'users' },
      ],
      2,
      /built already/,
    ],
    ['a block of two sides', [{ type: 'load', block: 'a', side: 'items' }], 2, /the block a is one of users/],
    ['no blocks', [{ type: 'build', block: 'a', rows: 2400, blocks: 0 }], 2, /at least one block, got 0/],
    [
      'rows for a block that there is not',
      [
        { type: 'build', block: 'a', rows: 2400, blocks: 3 },
        { type: 'send', block: 'a', version: 0, to: 3 },
      ],
      2,
      /there is no block 3: build named 3/,
    ],
    [
      'rows to send from a block that was built for none',
      [
        { type: 'build', block: 'a', rows: 2400 },
        { type: 'send', block: 'a', version: 0, to: 0 },
      ],
      2,
      /without the number of blocks of the other side/,
    ],
    ['a request without a field', [{ type: 'build', block: 'a' }], 2, /"build" needs a number rows/],
    [
      'a block that is not built',
      [{ type: 'start', block: 'a', version: 0, ratings: 1, squares: 1 }],
      2,
      /not built/,
    ],
  ] as const)('ends at %s', async (_, requests, code, message) => {
    const worker = await begun();
    await worker.ask({ type: 'load', block: 'a', side: 'users' }, ratingStream(triples));
    for (const request of requests)
      worker.request(request, request.type === 'load' ? ratingStream(triples) : undefined);
    const ended = await worker.ended;
    expect(ended.code).toBe(code);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
  });

  it('refuses a stream that is cut between two batches', async () => {
    const worker = await begun();
    const stream = ratingStream(triples);
    worker.request({ type: 'load', block: 'a', side: 'users' }, stream.subarray(0, stream.length - 8));
    const ended = await worker.ended;
    expect(ended.code).toBe(3);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(/its end mark is missing/);
  });

  it('takes previous rows in several frames, and no rows of other blocks', async () => {
    const worker = await begun();
    const sums = { ratings: 2, squares: 10 };
    const frames: Uint8Array[] = [];
    for (const user of [5, 9, 7]) {
      await worker.ask(
        { type: 'load', block: `one-${user}`, side: 'users' },
        ratingStream({ users: [user], items: [1], ratings: [3] }),
      );
      await worker.ask({ type: 'build', block: `one-${user}`, rows: 1 });
      const { factors } = await worker.ask({ type: 'start', block: `one-${user}`, version: 0, ...sums });
      frames.push(factors[0].payload);
    }
    await worker.ask(
      { type: 'load', block: 'both', side: 'users' },
      ratingStream({ users: [5, 9], items: [1, 1], ratings: [3, 1] }),
    );
    await worker.ask({ type: 'build', block: 'both', rows: 2 });
    const versions: unknown[] = [];
    for (const frame of frames.slice(0, 2)) {
      await worker.ask({ type: 'previous', block: 'both', version: 0, ...sums }, frame);
      const { answer } = await worker.ask({ type: 'state' });
      versions.push((answer.header.blocks as Record<string, { version: unknown }>).both.version);
    }
    expect(versions).toEqual([null, 0]);
    worker.request({ type: 'previous', block: 'both', version: 1, ...sums }, frames[2]);
    const ended = await worker.ended;
    expect(ended.code).toBe(3);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(/rows that the block does not have/);
  });

  it.each([
    [
      'rows of the fixed side that a block needs did not come',
      3,
      /69 of the 70 rows of the fixed side that the block needs did not come/,
    ],
  ] as const)('ends where %s', async (_, code, message) => {
    const worker = await begun();
    const sums = { ratings: 2400, squares: 24_000 };
    await worker.ask({ type: 'load', block: 'u', side: 'users' }, ratingStream(triples));
    await worker.ask({ type: 'build', block: 'u', rows: 2400 });
    // The start of one item, as the users of a block of one row.
    await worker.ask(
      { type: 'load', block: 'one', side: 'users' },
      ratingStream({ users: [triples.items[0]], items: [1], ratings: [1] }),
    );
    await worker.ask({ type: 'build', block: 'one', rows: 1 });
    const { factors } = await worker.ask({ type: 'start', block: 'one', version: 0, ...sums });
    await worker.ask({ type: 'fixed', block: 'u', version: 0 }, factors[0].payload);
    worker.request({ type: 'solve', block: 'u', fixed: 0, previous: null, version: 1, ...sums });
    const ended = await worker.ended;
    expect(ended.code).toBe(code);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
  });

  it.each([
    ['biases', true],
    ['regOffset', 3],
  ] as const)('refuses %s', async (name, value) => {
    const worker = new WorkerParent();
    worker.write(`${JSON.stringify({ protocol: 1, command: 'rows', params: { [name]: value } })}\n`);
    const ended = await worker.ended;
    expect(ended.code).toBe(2);
    expect(String(ended.frames.at(-1)?.header.message)).toMatch(
      new RegExp(`${name} cannot be used on blocks of rows`),
    );
  });

  it('ends when stdin does', async () => {
    const worker = await begun();
    await worker.ask({ type: 'state' });
    worker.close();
    const ended = await worker.ended;
    expect({ code: ended.code, signal: ended.signal }).toEqual({ code: 130, signal: null });
  });
});
