/** Implicit ALS against float64 over every cell of the dense matrix. */
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Model, type ProgressEvent } from '../../../index.ts';
import { referencePredict } from '../../support/reference/als.ts';
import {
  type ImplicitProblem,
  referenceImplicit,
  referenceImplicitLoss,
} from '../../support/reference/implicit.ts';
import { isDeep } from '../../support/deep.ts';
import { distinctRatings, factorsById } from '../../support/implicit.ts';
import { ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

const rows = distinctRatings(5, 70, 50, 900);
const forms = [
  { regParam: 0.05, alpha: 3 },
  { regParam: 0.5, alpha: 20, regExponent: 0 },
  { regParam: 0.01, alpha: 1, unobservedWeight: 0.1 },
  { regParam: 0.02, alpha: 2, unobservedWeight: 0.3, regExponent: 0.5 },
];

const fit = (
  ratings: readonly Triple[],
  options: AlsOptions,
  onEvent?: (event: ProgressEvent) => void,
  of = session,
): Promise<Model> =>
  new ALS({ implicitPrefs: true, weight: 'spark', ...options }).fit(of.from(ratingBatches(ratings, 97)), {
    onEvent,
  });

/** The reference's two iterations from the users of a first one, compared with a run of three. */
async function expectReference(
  ratings: readonly Triple[],
  form: ImplicitProblem,
  rank: number,
): Promise<Model> {
  const options: AlsOptions = { ...form, rank, solver: 'cholesky', seed: 3 };
  const first = await fit(ratings, { ...options, maxIter: 1 });
  const model = await fit(ratings, { ...options, maxIter: 3 });
  expectSame(model, referenceImplicit(ratings, factorsById(first.userFactors), form, 2), ratings);
  return model;
}

function expectSame(
  model: Model,
  expected: ReturnType<typeof referenceImplicit>,
  ratings: readonly Triple[],
): void {
  const got = { users: factorsById(model.userFactors), items: factorsById(model.itemFactors) };
  const users = [...new Set(ratings.map(({ user }) => user))];
  const items = [...new Set(ratings.map(({ item }) => item))];
  for (const user of users)
    for (const item of items)
      expect(
        Math.abs(referencePredict(got, user, item) - referencePredict(expected, user, item)),
      ).toBeLessThanOrEqual(1e-5);
}

describe('implicit als', () => {
  it.each(forms)('predicts what a dense float64 reference predicts, %j', async (form) => {
    for (const rank of isDeep ? [1, 5, 8, 17] : [1, 17]) await expectReference(rows, form, rank);
  });

  it.each(forms)('reports the loss of its factors over all cells, %j', async (form) => {
    const model = await fit(rows, { ...form, rank: 6, maxIter: 4 });
    const loss = referenceImplicitLoss(
      rows,
      { users: factorsById(model.userFactors), items: factorsById(model.itemFactors) },
      form,
    );
    const last = model.training!.iterations.at(-1)!;
    expect(Math.abs(last.loss - loss) / loss).toBeLessThan(1e-5);
    expect(last).not.toHaveProperty('trainRmse');
    expect(last).not.toHaveProperty('testRmse');
  });

  it('trains on pairs that are repeated, whose loss is below 0', async () => {
    const events = rows
      .filter(({ user }) => user % 10 === 0)
      .flatMap((one) => Array.from({ length: 40 }, () => ({ ...one, rating: 1 })));
    const { iterations } = (
      await fit(events, { alpha: 1, regParam: 0.1, rank: 8, maxIter: 4, solver: 'cholesky' })
    ).training!;
    expect(iterations).toHaveLength(4);
    expect(iterations[0].loss).toBeLessThan(0);
    iterations.slice(1).forEach(({ loss }, i) => expect(loss).toBeLessThanOrEqual(iterations[i].loss));
  });

  it('never lets the loss rise with the exact solver, and comes to the same loss by conjugate gradients', async () => {
    const options = { rank: 12, regParam: 0.05, alpha: 10, maxIter: 12 };
    const exact = (await fit(rows, { ...options, solver: 'cholesky' })).training!.iterations;
    exact.slice(1).forEach(({ loss }, i) => expect(loss).toBeLessThanOrEqual(exact[i].loss * (1 + 1e-6)));
    const steps = (await fit(rows, { ...options, solver: 'cg', cgSteps: 3 })).training!.iterations;
    expect(Math.abs(steps.at(-1)!.loss / exact.at(-1)!.loss - 1)).toBeLessThan(1e-2);
  });

  it('keeps factors at 0 or above when asked', async () => {
    const model = await fit(rows, { rank: 6, alpha: 5, maxIter: 6, nonnegative: true });
    for (const batch of [model.userFactors, model.itemFactors])
      for (const row of factorsById(batch).values())
        for (const value of row) expect(value).toBeGreaterThanOrEqual(0);
    const { iterations } = model.training!;
    iterations
      .slice(1)
      .forEach(({ loss }, i) => expect(loss).toBeLessThanOrEqual(iterations[i].loss * (1 + 1e-5)));
  });

  it('gives the same bits for any order of rows and any number of workers', async () => {
    const bits = async (ratings: readonly Triple[], workers: number, solver: 'cg' | 'cholesky') => {
      const own = await cpuSession({ workers });
      const model = await fit(ratings, { rank: 20, alpha: 4, maxIter: 2, solver }, undefined, own);
      return [model.userFactors, model.itemFactors].map((batch) =>
        Buffer.from((batch.data.children[1].children[0].values as Float32Array).slice().buffer).toString(
          'base64',
        ),
      );
    };
    for (const solver of ['cg', 'cholesky'] as const) {
      const expected = await bits(rows, 1, solver);
      expect(await bits(shuffled(rows, 9), 3, solver)).toEqual(expected);
    }
  });
});

describe('ratings that are not positive', () => {
  const signed = rows.map((row, i) => (i % 7 === 0 ? { ...row, rating: -row.rating } : row));

  it('weigh by |r| with preference 0, as in Spark, and are counted', async () => {
    const events: ProgressEvent[] = [];
    const form = { regParam: 0.1, alpha: 2 };
    const model = await expectReference(signed, form, 5);
    await fit(signed, { ...form, rank: 5, maxIter: 1 }, (event) => events.push(event));
    const loss = referenceImplicitLoss(
      signed,
      { users: factorsById(model.userFactors), items: factorsById(model.itemFactors) },
      form,
    );
    expect(model.training!.iterations.at(-1)!.loss / loss).toBeCloseTo(1, 5);
    expect(events).toContainEqual({
      type: 'warning',
      code: 'not-positive',
      text: `implicit data: ${signed.filter(({ rating }) => rating < 0).length} ratings below 0 count as dislikes: weight α |r|, preference 0`,
    });
  });

  it('leave a user without a positive rating at 0, with any solver, and change no other row', async () => {
    const disliking = [
      ...rows,
      { user: 1000, item: rows[0].item, rating: -2 },
      { user: 1000, item: rows[1].item, rating: 0 },
      { user: 1001, item: rows[2].item, rating: 0 },
    ];
    for (const solver of ['cholesky', 'cg'] as const) {
      const events: ProgressEvent[] = [];
      const [without, model] = [
        await fit(rows, { rank: 4, maxIter: 2, solver }),
        await fit(disliking, { rank: 4, maxIter: 2, solver }, (event) => events.push(event)),
      ];
      const users = factorsById(model.userFactors);
      expect([...users.get(1000)!, ...users.get(1001)!]).toEqual(Array(8).fill(0));
      expect(events.find(({ type }) => type === 'warning')).toMatchObject({
        text: 'implicit data: 1 ratings below 0 count as dislikes: weight α |r|, preference 0; 2 ratings of 0 have no weight; 2 users without a rating above 0 get factors of 0',
      });
      if (solver === 'cholesky')
        for (const [id, row] of factorsById(without.itemFactors))
          row.forEach((value, k) => expect(factorsById(model.itemFactors).get(id)![k]).toBeCloseTo(value, 1));
    }
  });

  it('are an error where there are no others', async () => {
    await expect(
      fit(
        rows.map((row) => ({ ...row, rating: -1 })),
        { rank: 2 },
      ),
    ).rejects.toThrow('no rating is above 0, so implicit data prefer nothing');
  });
});

describe('parameters of implicit data', () => {
  it('train with α = 0, where all pairs weigh the same', async () => {
    await expectReference(rows, { regParam: 0.1, alpha: 0 }, 4);
  });

  it.each([
    [{ implicitPrefs: true, biases: true }, 'biases cannot be used with implicitPrefs'],
    [{ implicitPrefs: true, earlyStop: 2 }, 'earlyStop cannot be used with implicitPrefs'],
    [{ implicitPrefs: true, targetRmse: 2 }, 'targetRmse cannot be used with implicitPrefs'],
    [{ alpha: 2 }, 'alpha acts only on implicit data, with implicitPrefs'],
    [{ unobservedWeight: 0.1 }, 'unobservedWeight acts only on implicit data'],
    [{ implicitPrefs: true, alpha: -1 }, 'alpha must be auto or a number of 0 or more, got -1'],
    [{ implicitPrefs: true, unobservedWeight: 0 }, 'unobservedWeight must be a number above 0, got 0'],
  ] as [AlsOptions, string][])('are refused where they cannot be used: %j', (options, message) => {
    expect(() => new ALS(options)).toThrow(message);
  });
});

describe('ratings by the column of', () => {
  type Named = (row: Triple) => Record<string, unknown>;

  async function trained(named: Named, options: AlsOptions = {}) {
    const events: ProgressEvent[] = [];
    const data = session.fromRows(rows.map(named));
    const model = await new ALS({ implicitPrefs: true, rank: 3, maxIter: 2, ...options }).fit(data, {
      onEvent: (event) => events.push(event),
    });
    return { data, model, events, bits: factorsById(model.userFactors) };
  }
  const named = (name: string, more: object = {}): Named => {
    return ({ user, item, rating }) => ({ user, item, [name]: rating, ...more });
  };

  it.each(['Quantity', 'play_count'])('a usual name: %s', async (name) => {
    const [rated, found, chosen] = [
      await trained(named('rating')),
      await trained(named(name, { time: 5, session_id: 3 })),
      await trained(named(name), { ratingCol: name }),
    ];
    expect(found.bits).toEqual(rated.bits);
    expect(chosen.bits).toEqual(rated.bits);
    expect(found.model.columns.rating).toBe(name);
    expect(found.model.training?.warnings.map(({ code }) => code)).toEqual([]);
    expect(found.events).toContainEqual({
      type: 'note',
      text: `a column is recognised by its name: rating is "${name}"; another is chosen with ratingCol`,
    });
    // A model finds the column again, as a validation set and users to fold in do.
    const folded = await rated.model.foldIn(rated.data.limit(20));
    expect(factorsById((await found.model.foldIn(found.data.limit(20))).model.userFactors)).toEqual(
      factorsById(folded.model.userFactors),
    );
  });

  it('no usual name, which is a warning', async () => {
    const ones = await trained(({ user, item }) => ({ user, item, rating: 1 }));
    for (const [more, names] of [
      [{ price: 3 }, '"price" is'],
      [{ price: 3, quantity: 2, plays: 1 }, '"price", "quantity", "plays" are'],
    ] as const) {
      const { bits, model, events } = await trained(({ user, item }) => ({ user, item, ...more, time: 7 }));
      expect(bits).toEqual(ones.bits);
      const text = `there is no column "rating": each pair counts as a rating of 1, and ${names} not used. If the numbers say how often or how much, name the column with ratingCol`;
      expect(model.training?.warnings).toEqual([{ code: 'unused-numbers', text }]);
      expect(events.filter(({ type }) => type === 'warning')).toEqual([
        { type: 'warning', code: 'unused-numbers', text },
      ]);
    }
  });

  it('no numbers, which is a note', async () => {
    const { model, events } = await trained(({ user, item }) => ({ user, item, order_id: 5, day: 'Monday' }));
    expect(model.training?.warnings).toEqual([]);
    expect(events.find(({ type }) => type === 'note')).toMatchObject({
      text: expect.stringMatching(/there is no column "rating".* each pair counts as a rating of 1$/),
    });
  });
});
