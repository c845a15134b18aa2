/** Many hosts that solve items from sums of equations, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it } from 'vitest';
import type { AlsOptions } from '../../index.ts';
import { equationColumns, equationLayout } from '../../operators/tasks/equation-tasks.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { RowTraining, type RowExchange } from '../support/row-workers.ts';
import { largestDifference, oneHost } from '../support/one-host.ts';
import { ratingStream, rowsOf, type Triples, WorkerParent } from '../support/worker-parent.ts';

const triples = numberedRatings(2400);

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.kill();
});

async function trained(
  params: AlsOptions & { readonly maxIter: number },
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
    ['exactly', 1, { rank: 6, maxIter: 3, seed: 3, regParam: 0.05, solver: 'cholesky' }],
    ['by conjugate gradients', 2, { rank: 6, maxIter: 3, seed: 3, solver: 'cg', cgSteps: 3 }],
    ['by the solver of each row', 2, { rank: 6, maxIter: 3, seed: 5, regParam: 0.3, regExponent: 0.5 }],
    ['without negative factors', 2, { rank: 4, maxIter: 2, nonnegative: true }],
    ['from implicit data', 3, { rank: 5, maxIter: 3, implicitPrefs: true, alpha: 4, seed: 2 }],
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
    const params = { rank: 6, maxIter: 3, seed: 1 };
    const expected = await trained(params, 2);
    const rows = await trained({ ...params, maxIter: 1 }, 2);
    await rows.lose(1);
    await rows.iterate();
    await rows.lose(0);
    await rows.iterate();
    expect(rows.factors('users')).toEqual(expected.factors('users'));
    expect(rows.factors('items')).toEqual(expected.factors('items'));
  });
});

describe('a share of equations', () => {
  const sums = { ratings: 3, squares: 14 };

  /** A worker with users 1 and 2, who rate the items 5 and 6, and with these items. */
  async function begun(): Promise<WorkerParent> {
    const worker = new WorkerParent();
    open.push({ kill: () => worker.child.kill('SIGKILL') });
    worker.write(`${JSON.stringify({ protocol: 1, command: 'rows', params: { rank: 2 } })}\n`);
    const ratings = ratingStream({ users: [1, 1, 2], items: [5, 6, 5], ratings: [1, 2, 3] });
    for (const side of ['users', 'items']) {
      await worker.ask({ type: 'load', block: side, side }, ratings);
      await worker.ask({ type: 'build', block: side, rows: 3, blocks: 1 });
    }
    return worker;
  }

  it('is A, b and the number of ratings, without regularization', async () => {
    const worker = await begun();
    const start = await worker.ask({ type: 'start', block: 'users', version: 0, ...sums });
    const [[a, b], [c, d]] = [...rowsOf(start.factors).values()];
    const { factors, answer } = await worker.ask({ type: 'equations', block: 'users', version: 0, to: 0 });
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

  it('is asked for where it is missing', async () => {
    const worker = await begun();
    const ask = async (request: Parameters<WorkerParent['ask']>[0]) =>
      (await worker.ask(request)).answer.header;
    expect(await ask({ type: 'equations', block: 'users', version: 0, to: 0 })).toMatchObject({
      missing: 'previous',
    });
    const solve = { type: 'solve', block: 'items', fixed: 0, version: 1, equations: true, ...sums };
    expect(await ask(solve)).toMatchObject({ missing: 'equations' });
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
