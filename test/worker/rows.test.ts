/** Many hosts: blocks of rows in several workers, docs/reference/worker-protocol.md. */
import { afterEach, describe, expect, it } from 'vitest';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import type { AlsOptions } from '../../index.ts';
import { everyNth } from '../support/deep.ts';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { largestDifference, oneHost } from '../support/one-host.ts';
import { RowTraining } from '../support/row-workers.ts';
import type { Triples } from '../support/worker-parent.ts';

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
    const params = { rank: 6, maxIter: 4, seed: 1, solver: 'cg' as const };
    const expected = await oneHost(params, triples);
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

describe('rows in float16', () => {
  /** Factors after three iterations, in which some workers may be lost. */
  async function trained(
    params: AlsOptions,
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
      const three = await trained(params, 3, 'shuffle');
      expect(largestDifference(three.users, expected.users)).toBeLessThan(5e-3);
      expect(largestDifference(three.items, expected.items)).toBeLessThan(5e-3);
      expect(three.users).not.toEqual(expected.users);
      expect(await trained(params, 2, 'broadcast')).toEqual(three);
      expect(await trained(params, 3, 'shuffle', { lost: 1 })).toEqual(three);
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
  it.each([1, 3])(
    'in %d workers give the factors and the loss of one host within rounding',
    async (blocks) => {
      const params = { rank: 5, maxIter: 3, implicitPrefs: true, alpha: 4, seed: 2 };
      const expected = await oneHost(params, triples);
      const rows = training(params, blocks);
      await rows.start();
      for (let k = 0; k < params.maxIter; k++) await rows.iterate();
      expect(largestDifference(rows.factors('users'), expected.users)).toBeLessThan(1e-4);
      expect(largestDifference(rows.factors('items'), expected.items)).toBeLessThan(1e-4);
      expect((await rows.loss()).loss / (expected.last?.loss ?? 0)).toBeCloseTo(1, 5);
    },
  );
});
