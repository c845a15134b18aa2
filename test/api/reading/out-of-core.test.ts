/** Ratings that do not fit in the memory budget are trained on from files, and give the same model. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { baseBytes, leastBaseBytes } from '../../../operators/planner/memory-budget.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { ALS, type AlsOptions, CapacityError, type Dataset, type Model, Session } from '../../../index.ts';
import { everyNth } from '../../support/deep.ts';
import { ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { factorsOf } from '../../support/model-values.ts';

const folder = temporaryFolder();

/** In two thirds of them a pair is repeated. */
function ratingsOf(count: number, value: (k: number, drawn: number) => number): Triple[] {
  const random = testRandom(7);
  return Array.from({ length: count }, (_, k) => ({
    user: Math.floor(random() ** 2 * 3000),
    item: Math.floor(random() ** 2 * 700),
    rating: value(k, random()),
  }));
}

const stars = ratingsOf(320_000, (_, drawn) => Math.round(drawn * 8 + 2) / 2);
const held = ratingsOf(5000, (_, drawn) => Math.round(drawn * 8 + 2) / 2);

async function train(
  memoryBudget: number | undefined,
  rows: readonly Triple[],
  options: AlsOptions,
  validation?: readonly Triple[],
): Promise<{ readonly model: Model; readonly factors: Float32Array[] }> {
  await using session = await Session.create({
    device: 'cpu',
    workers: 1,
    spillDir: folder,
    ...(memoryBudget === undefined ? {} : { memoryBudget }),
  });
  const dataset = (triples: readonly Triple[]): Dataset => session.from(ratingBatches(triples, 50_000));
  const model = await new ALS({ rank: 4, maxIter: 2, seed: 3, ...options }).fit(
    dataset(rows),
    validation ? { validation: dataset(validation) } : {},
  );
  expect(readdirSync(folder).length).toBe(1);
  return { model, factors: factorsOf(model) };
}

/**
 * The budget is used up by the process itself, so the smallest parts are taken: three of them for these
 * ratings.
 */
const tight = baseBytes(1);

/** Rows are made for the settings that run. */
const settings: readonly [string, () => readonly Triple[], AlsOptions][] = [
  ['explicit with biases', () => stars, {}],
  ['an offset of the penalty, without biases', () => stars, { biases: false, regOffset: 0.5 }],
  [
    'ratings in thousands, which are trained in a unit',
    () => ratingsOf(300_000, (_, drawn) => 1000 * drawn),
    {},
  ],
  [
    'implicit, with ratings of 0 and below',
    () => ratingsOf(300_000, (k, drawn) => Math.round(drawn * 4 - 1) * (k % 3000 === 1 ? -1 : 1)),
    { implicitPrefs: true, alpha: 2 },
  ],
];

describe('ratings beyond the memory budget', () => {
  it.each(everyNth(settings, 4, 3))('train to the same model: %s', async (_, make, options) => {
    const rows = make();
    const whole = await train(undefined, rows, options, options.implicitPrefs ? undefined : held);
    const parts = await train(tight, rows, options, options.implicitPrefs ? undefined : held);
    expect(whole.model.training?.plan.memory[SPILL]).toBeUndefined();
    expect(parts.model.training?.plan.memory[SPILL]).toBeGreaterThan(16 * 200_000);
    expect(parts.model.training?.plan.choices.grid).toMatchObject({
      users: { ratings: 'spill' },
      items: { ratings: 'spill' },
    });
    expect(parts.factors).toEqual(whole.factors);
    const [left, right] = [whole, parts].map(({ model }) => model.training?.iterations ?? []);
    expect(left).toHaveLength(2);
    left.forEach(({ loss, trainRmse, testRmse }, i) => {
      expect(right[i].loss / loss).toBeCloseTo(1, 12);
      // If no ratings are left out, the slices are the same as in the whole block, so sums have the same
      // bits.
      expect(right[i].trainRmse).toBe(trainRmse);
      if (testRmse !== undefined) expect((right[i].testRmse ?? 0) / testRmse).toBeCloseTo(1, 12);
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('have repeated pairs treated by the policy', async () => {
    const options = { onDuplicates: 'mean' } as const;
    const [whole, parts] = [await train(undefined, stars, options), await train(tight, stars, options)];
    expect(parts.factors).toEqual(whole.factors);
    expect(parts.model.training?.ratings).toBe(whole.model.training?.ratings);
  });

  it('are an error with the least that works where a part does not fit either', async () => {
    const failed = train(leastBaseBytes(1) + 2 ** 20, stars, {});
    await expect(failed).rejects.toThrow(CapacityError);
    const least = await failed.then(
      () => 0,
      ({ message }: Error) => Number(/Raise memoryBudget to ([\d.]+) MiB/.exec(message)?.[1]),
    );
    expect(least).toBeGreaterThan(0);
    await expect(train(Math.ceil(least * 2 ** 20), stars, { maxIter: 1 })).resolves.toBeDefined();
  });
});
