/** Many hosts: blocks of rows in several workers, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it, afterAll, beforeAll } from 'vitest';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import type { AlsOptions } from '../../index.ts';
import { everyNth } from '../support/deep.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { largestDifference, oneHost } from '../support/one-host.ts';
import { RowTraining, type RowExchange } from '../support/row-workers.ts';
import { type Triples, ratingStream, rowsOf, WorkerHere } from '../support/worker-parent.ts';
import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import { sentBytes } from '../../bench/spark/simulate.ts';

const triples = numberedRatings(2400);

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

type Params = Omit<AlsOptions, 'itemAttributes' | 'userAttributes'>;

function training(
  params: Params,
  blocks: number,
  ratings: Triples = triples,
  exchange: 'shuffle' | 'broadcast' = 'shuffle',
): RowTraining {
  const made = new RowTraining({ ...params }, ratings, blocks, { exchange });
  open.push(made);
  return made;
}

describe('blocks of explicit ratings', () => {
  it.each([
    [1, 'exactly', { rank: 6, maxIter: 2, seed: 3, regParam: 0.05, solver: 'cholesky' }],
    [
      2,
      'by conjugate gradients, which start from the rows before',
      { rank: 6, maxIter: 2, seed: 3, solver: 'cg', cgSteps: 3 },
    ],
    [3, 'by the solver of each row', { rank: 6, maxIter: 2, seed: 5, regExponent: 0.5 }],
    [2, 'with non-negative factors', { rank: 4, maxIter: 2, nonnegative: true }],
  ] as const)(
    'in %d workers, solved %s, give the factors and the loss of one host',
    async (blocks, _, params) => {
      const expected = await oneHost(params, triples);
      const rows = training(params, blocks);
      await rows.start();
      for (let k = 0; k < params.maxIter; k++) await rows.iterate();
      expect(rows.factors('users')).toEqual(expected.users);
      expect(rows.factors('items')).toEqual(expected.items);
      const { loss, trainRmse } = await rows.loss();
      expect(loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 9);
      expect(trainRmse / (expected.last?.trainRmse ?? 0)).toBeCloseTo(1, 9);
      const ofSolve = await rows.loss(true);
      expect(ofSolve.loss / loss).toBeCloseTo(1, 5);
      expect(ofSolve.trainRmse / trainRmse).toBeCloseTo(1, 5);
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
    const { loss } = await rows.loss();
    expect(loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 9);
    expect((await rows.loss(true)).loss / loss).toBeCloseTo(1, 5);
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
    const params = { rank: 6, maxIter: 3, seed: 1, solver: 'cg' as const };
    const expected = await oneHost(params, triples);
    const rows = training(params, 2);
    await rows.start();
    await rows.iterate();
    await rows.lose(1);
    await rows.iterate();
    await rows.lose(0);
    await rows.iterate();
    expect(rows.factors('users')).toEqual(expected.users);
    expect(rows.factors('items')).toEqual(expected.items);
  });
});

describe('rows in float16', () => {
  /** Factors after three iterations, in which some workers may be lost. */
  async function trained(
    params: Params,
    blocks: number,
    exchange: 'shuffle' | 'broadcast',
    { ratings = triples, lost }: { readonly ratings?: Triples; readonly lost?: number } = {},
  ) {
    const rows = new RowTraining({ ...params }, ratings, blocks, { exchange, precision: 'float16' });
    open.push(rows);
    await rows.start();
    await rows.iterate();
    if (lost !== undefined) await rows.lose(lost);
    await rows.iterate();
    await rows.iterate(true);
    return { users: rows.factors('users'), items: rows.factors('items') };
  }

  it.each(everyNth(['cg', 'cholesky'] as const, 2))(
    'give factors close to those of one host by %s, whatever the hosts, the exchange and a lost worker',
    async (solver) => {
      const params = { rank: 6, maxIter: 3, seed: 3, regParam: 0.05, solver };
      const expected = await oneHost(params, triples);
      const three = await trained(params, 3, 'shuffle', { lost: 1 });
      expect(largestDifference(three.users, expected.users)).toBeLessThan(5e-3);
      expect(largestDifference(three.items, expected.items)).toBeLessThan(5e-3);
      expect(three.users).not.toEqual(expected.users);
      expect(await trained(params, 1, 'broadcast')).toEqual(three);
    },
  );

  it('are within its range for ratings of any size', async () => {
    const params = { rank: 4, maxIter: 3, regParam: 1e8 };
    const ratings = numberedRatings(2400, { scale: 4 ** 18 });
    const large = await trained(params, 2, 'shuffle', { ratings });
    expect(largestDifference(large.users, (await oneHost(params, ratings)).users)).toBeLessThan(5e-3);
  });
});

describe('blocks of implicit data', () => {
  it('in 3 workers give the factors and the loss of one host within rounding', async () => {
    const params = { rank: 5, maxIter: 3, implicitPrefs: true, alpha: 4, seed: 2 };
    const expected = await oneHost(params, triples);
    const rows = training(params, 3);
    await rows.start();
    for (let k = 0; k < params.maxIter; k++) await rows.iterate();
    expect(largestDifference(rows.factors('users'), expected.users)).toBeLessThan(1e-4);
    expect(largestDifference(rows.factors('items'), expected.items)).toBeLessThan(1e-4);
    expect((await rows.loss()).loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 5);
  });
});

describe('sums of equations', () => {
  const triples = numberedRatings(2400);

  const open: { kill(): void }[] = [];
  afterEach(() => {
    for (const one of open.splice(0)) one.kill();
  });

  async function trained(
    params: Params & { readonly maxIter: number },
    blocks: number,
    { exchange = 'equations', ratings = triples }: { exchange?: RowExchange; ratings?: Triples } = {},
  ): Promise<RowTraining> {
    const rows = new RowTraining({ ...params }, ratings, blocks, { exchange });
    open.push(rows);
    await rows.start();
    for (let k = 0; k < params.maxIter; k++) await rows.iterate();
    return rows;
  }

  describe('items solved from sums of equations', () => {
    it.each([
      ['exactly', 1, { rank: 6, maxIter: 2, seed: 3, regParam: 0.05, solver: 'cholesky' }],
      ['by conjugate gradients', 2, { rank: 6, maxIter: 2, seed: 3, solver: 'cg', cgSteps: 3 }],
      ['by the solver of each row', 2, { rank: 6, maxIter: 2, seed: 5, regParam: 0.3, regExponent: 0.5 }],
      ['without negative factors', 2, { rank: 4, maxIter: 2, nonnegative: true }],
      ['from implicit data', 3, { rank: 5, maxIter: 2, implicitPrefs: true, alpha: 4, seed: 2 }],
    ] as const)('%s, in %d workers, are those of one host within rounding', async (_, blocks, params) => {
      const expected = await oneHost(params, triples);
      const rows = await trained(params, blocks);
      expect(largestDifference(rows.factors('users'), expected.users)).toBeLessThan(1e-4);
      expect(largestDifference(rows.factors('items'), expected.items)).toBeLessThan(1e-4);
      expect(await rows.end()).toEqual(Array.from({ length: blocks }, () => 0));
    });

    it('have the unit of unusual ratings', async () => {
      const params = { rank: 4, maxIter: 2, regParam: 1e5 };
      const ratings = numberedRatings(1500, { scale: 1e8 });
      const expected = await oneHost(params, ratings);
      const rows = await trained(params, 2, { ratings });
      expect(largestDifference(rows.factors('items'), expected.items)).toBeLessThan(1e-4);
    });

    it('need one share for each block that rates an item', async () => {
      const ratings = numberedRatings(240);
      const params = { rank: 4, maxIter: 1, seed: 1 };
      const [sums, needed] = [
        await trained(params, 2, { ratings }),
        await trained(params, 2, { ratings, exchange: 'shuffle' }),
      ];
      // Users are solved from the same items; items get fewer shares than rows of users.
      expect(sums.rowsSent).toBeLessThan(needed.rowsSent);
    });

    it('are the same bits after workers were killed between iterations', async () => {
      const params = { rank: 6, maxIter: 2, seed: 1 };
      const expected = await trained(params, 2);
      const rows = await trained({ ...params, maxIter: 1 }, 2);
      for (const worker of [1, 0]) await rows.lose(worker);
      await rows.iterate();
      expect(rows.factors('users')).toEqual(expected.factors('users'));
      expect(rows.factors('items')).toEqual(expected.factors('items'));
    });
  });

  describe('a share of equations', () => {
    const sums = { ratings: 3, squares: 14 };

    /** A worker with users 1 and 2, who rate the items 5 and 6, and with these items. */
    async function begun(): Promise<WorkerHere> {
      const worker = new WorkerHere();
      open.push(worker);
      worker.open({ command: 'rows', params: { rank: 2 } });
      const ratings = ratingStream({ users: [1, 1, 2], items: [5, 6, 5], ratings: [1, 2, 3] });
      for (const side of ['users', 'items']) {
        await worker.ask({ type: 'load', block: side, side }, ratings);
        await worker.ask({ type: 'build', block: side, rows: 3, blocks: 1 });
      }
      return worker;
    }

    it('is A, b and the number of ratings, without regularization, and asked for where it is missing', async () => {
      const worker = await begun();
      const equations = { type: 'equations', block: 'users', version: 0, to: 0 };
      expect((await worker.ask(equations)).answer.header).toMatchObject({ missing: 'previous' });
      const solve = { type: 'solve', block: 'items', fixed: 0, version: 1, equations: true, ...sums };
      expect((await worker.ask(solve)).answer.header).toMatchObject({ missing: 'equations' });
      const start = await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
      const [[a, b], [c, d]] = [...rowsOf(start.factors).values()];
      const { factors, answer } = await worker.ask(equations);
      expect(answer.header).toMatchObject({ rows: 2 });
      const found = rowsOf(factors);
      expect([...found.keys()]).toEqual([5, 6]);
      const expected = [a * a + c * c, a * b + c * d, b * b + d * d, a + 3 * c, b + 3 * d, 2];
      expect(found.get(5)).toHaveLength(equationColumns(2, false));
      expected.forEach((value, k) => expect(found.get(5)?.[k]).toBeCloseTo(value, 5));
      expect(found.get(6)?.[equationLayout(2).n]).toBe(1);
    });

    it('gives users whose loss is known without rows of items', async () => {
      const worker = await begun();
      const start = await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
      const fixed = { block: 'items', version: 0, ...sums };
      await worker.ask({ type: 'fixed', ...fixed }, start.factors[0].payload);
      const items = await worker.ask({ type: 'solve', block: 'items', fixed: 0, version: 1, ...sums });
      const share = await worker.ask({ type: 'equations', block: 'items', version: 1, to: 0 });
      await worker.ask({ type: 'add', block: 'users', version: 1 }, share.factors[0].payload);
      const solve = { type: 'solve', block: 'users', fixed: 1, version: 2, equations: true, ...sums };
      const { factors, answer } = await worker.ask(solve);
      expect(answer.header).toMatchObject({ kernel: expect.stringMatching(/^solve-equations ./) });
      const loss = { type: 'loss', block: 'users', version: 2, fixed: 1 };
      expect((await worker.ask(loss)).answer.header).toMatchObject({ missing: 'fixed' });
      const found = (await worker.ask({ ...loss, solved: true })).answer.header;
      const [x, theta] = [rowsOf(factors), rowsOf(items.factors)];
      const product = (user: number, item: number) =>
        (x.get(user) ?? []).reduce((sum, value, k) => sum + value * (theta.get(item)?.[k] ?? NaN), 0);
      const errors = [1 - product(1, 5), 2 - product(1, 6), 3 - product(2, 5)];
      expect(found.count).toBe(3);
      expect(found.squared).toBeCloseTo(
        errors.reduce((sum, error) => sum + error ** 2, 0),
        4,
      );
    });

    it.each([
      ['twice', [0, 0], /the equations of the row 5 count 4 of its 2 ratings/],
      ['of other rows', [1], /2 equations has rows that the block does not have/],
    ] as const)('that comes %s is an error', async (_, shares, message) => {
      const worker = await begun();
      await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
      const own = await worker.ask({ type: 'equations', block: 'users', version: 0, to: 0 });
      await worker.ask(
        { type: 'load', block: 'more', side: 'users' },
        ratingStream({ users: [3, 4], items: [7, 8], ratings: [1, 1] }),
      );
      await worker.ask({ type: 'build', block: 'more', rows: 2, blocks: 1 });
      await worker.ask({ type: 'start', block: 'more', version: 0, ...sums });
      const other = await worker.ask({ type: 'equations', block: 'more', version: 0, to: 0 });
      for (const share of shares)
        worker.request({ type: 'add', block: 'items', version: 0 }, [own, other][share].factors[0].payload);
      worker.request({ type: 'solve', block: 'items', fixed: 0, version: 1, equations: true, ...sums });
      const ended = await worker.ended;
      expect(ended.code).toBe(3);
      expect(String(ended.frames.at(-1)?.header.message)).toMatch(message);
    });

    it('with NaN is an error that names the row', async () => {
      const worker = await begun();
      await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
      const { factors } = await worker.ask({ type: 'equations', block: 'users', version: 0, to: 0 });
      const payload = Buffer.from(factors[0].payload);
      const first = [...(rowsOf(factors).get(5) ?? [])][0];
      const bytes = Buffer.alloc(4);
      bytes.writeFloatLE(first);
      payload.writeFloatLE(Number.NaN, payload.indexOf(bytes));
      await worker.ask({ type: 'add', block: 'items', version: 0 }, payload);
      worker.request({ type: 'solve', block: 'items', fixed: 0, version: 1, equations: true, ...sums });
      const ended = await worker.ended;
      expect(ended.code).toBe(5);
      expect(String(ended.frames.at(-1)?.header.message)).toMatch(/the normal equations of the row 5/);
    });
  });
});

describe('the bytes that workers send for a half-iteration', () => {
  const rank = 32;
  const blocks = 2;
  const ratings = numberedRatings(6000, { users: 1200, items: 300 });

  describe('of the users of one of two blocks', () => {
    let worker: WorkerHere;
    let built: { readonly sends: readonly number[]; readonly columns: number };

    beforeAll(async () => {
      worker = new WorkerHere();
      worker.open({ command: 'rows', exchange: 'float16', params: { rank } });
      const owners = blocksOfIds(
        { type: 'int32', values: Int32Array.from(ratings.users as number[]) },
        blocks,
      );
      const own = <T>(values: readonly T[]) => values.filter((_, at) => owners[at] === 0);
      const users = own(ratings.users);
      const block = { block: 'users', side: 'users' };
      await worker.ask(
        { type: 'load', ...block },
        ratingStream({ users, items: own(ratings.items), ratings: own(ratings.ratings) }),
      );
      const { answer } = await worker.ask({ type: 'build', ...block, rows: users.length, blocks });
      built = answer.header as unknown as typeof built;
      await worker.ask({ type: 'start', ...block, version: 0, squares: 1, ratings: 1 });
    });

    afterAll(() => worker.kill());

    async function sent(type: 'send' | 'equations'): Promise<number> {
      let bytes = 0;
      for (let to = 0; to < blocks; to++) {
        const { factors } = await worker.ask({ type, block: 'users', version: 0, to });
        bytes += factors.reduce((sum, { payload }) => sum + payload.length, 0);
      }
      return bytes;
    }

    it('the rows that the items of two blocks need are within 10 % of the model', async () => {
      const rows = built.sends.reduce((sum, one) => sum + one, 0);
      expect(rows).toBeGreaterThan(600);
      expect(Math.abs((await sent('send')) / (rows * sentBytes(rank)) - 1)).toBeLessThan(0.1);
    });

    it('their shares of equations are within 10 % of the model', async () => {
      const model = built.columns * (4 * equationColumns(rank, false) + 8);
      expect(Math.abs((await sent('equations')) / model - 1)).toBeLessThan(0.1);
    });
  });
});
