import { tableFromJSON } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, CrossValidator, Dataset, Model, SGD, UsageError } from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

let ratings: Dataset;
let model: Model;

const session = await cpuSession({ workers: 1 });
beforeAll(async () => {
  ratings = session.from(ratingBatches(randomRatings(4, 40, 30, 400)));
  model = await new ALS({ rank: 2, maxIter: 1 }).fit(ratings);
});

const estimator = (params: { rank: number }) => new ALS(params);

/** Every public method that takes options, with these. */
const methods: Readonly<Record<string, (options: never) => unknown>> = {
  randomSplit: (options) => ratings.randomSplit([1, 1], options),
  kFold: (options) => ratings.kFold(2, options),
  timeSplit: (options) => ratings.timeSplit({ before: 1 }, options),
  leaveLastOut: (options) => ratings.leaveLastOut(options),
  stream: (options) => ratings.stream(options),
  count: (options) => ratings.count(options),
  'write.parquet': (options) => ratings.write.parquet('/nowhere/x.parquet', options),
  'write.csv': (options) => ratings.write.csv('/nowhere/x.csv', options),
  'write.arrow': (options) => ratings.write.arrow('/nowhere/x.arrow', options),
  'read.parquet': (options) => session.read.parquet('x', options),
  'read.csv': (options) => session.read.csv('x', options),
  'read.text': (options) => session.read.text('x', options),
  'read.any': (options) => session.read.any('x', options),
  'session.from': (options) => session.from([], undefined, options),
  'ALS.fit': (options) => new ALS().fit(ratings, options),
  'ALS.plan': (options) => new ALS().plan(ratings, options),
  'SGD.fit': (options) => new SGD().fit(ratings, options),
  'SGD.plan': (options) => new SGD().plan(ratings, options),
  update: (options) => model.update(ratings, options),
  predict: (options) => model.predict(ratings, options),
  evaluate: (options) => model.evaluate(ratings, options),
  recommendForAllUsers: (options) => model.recommendForAllUsers(1, options),
  recommendForUsers: (options) => model.recommendForUsers([1], 1, options),
  similarItems: (options) => model.similarItems('all', 1, options),
  similarUsers: (options) => model.similarUsers('all', 1, options),
  save: (options) => model.save('/nowhere/model', options),
  'a cross-validator': (options) => new CrossValidator(options),
  'CrossValidator.fit': (options) =>
    new CrossValidator({ estimator, grid: [{ rank: 2 }] }).fit(ratings, options),
};

async function errorOf(run: () => unknown): Promise<Error> {
  try {
    await run();
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

describe('options', () => {
  it.each(Object.entries(methods))('of %s must be an object of known names', async (name, method) => {
    expect((await errorOf(() => method({ sede: 1 } as never))).message).toMatch(
      new RegExp(`unknown option sede of ${name}\\. (Did you mean seed\\? )?There are: `),
    );
    for (const [value, text] of [
      [42, '42'],
      [null, 'null'],
      ['a', '"a"'],
      [[1], 'an array'],
      [() => 1, 'a function'],
    ]) {
      const { message } = await errorOf(() => method(value as never));
      expect(message).toMatch(`${name} takes options such as {`);
      expect(message.endsWith(`}, got ${text}`)).toBe(true);
    }
  });

  it('are told with an example', async () => {
    expect((await errorOf(() => ratings.randomSplit([1, 1], 42 as never))).message).toBe(
      'randomSplit takes options such as { seed: 42 }, got 42',
    );
    expect((await errorOf(() => ratings.kFold(2, { user: 'user' } as never))).message).toBe(
      'unknown option user of kFold. There are: seed, whole, userCol, itemCol',
    );
  });

  it.each([-1, 2 ** 32, 1.5, Number.NaN, '42', null])('refuse the seed %s', async (seed) => {
    for (const run of [
      () => ratings.randomSplit([1, 1], { seed: seed as number }),
      () => ratings.kFold(2, { seed: seed as number }),
      () => new CrossValidator({ estimator, grid: [{ rank: 2 }], seed: seed as number }),
    ]) {
      expect((await errorOf(run)).message).toMatch(
        'seed must be a whole number from 0 to 4,294,967,295, got ',
      );
    }
  });
});

describe('what is no data set, batch or session', () => {
  it.each([
    ['ALS.fit takes a data set, got an array', () => new ALS().fit([] as never)],
    [
      'the option validation of ALS.fit takes a data set, got an object',
      () => new ALS().fit(ratings, { validation: {} as never }),
    ],
    ['predict takes a data set, got an array', () => model.predict([] as never)],
    [
      'CrossValidator.fit takes a data set, got an array',
      () => new CrossValidator({ estimator, grid: [{ rank: 2 }] }).fit([] as never),
    ],
    [
      'Model.load takes a session and a folder. Model.load(session, directory)',
      () => Model.load('model/' as never, undefined as never),
    ],
    [
      'grid must be an array of parameters such as paramGrid({ rank: [8, 16] }), got undefined',
      () => new CrossValidator({ estimator } as never),
    ],
    [
      'estimator must be a function such as (params) => new ALS(params), got an object',
      () => new CrossValidator({ estimator: new ALS(), grid: [{}] } as never),
    ],
    [
      'split weights must be an array of numbers such as [0.9, 0.1], got 0.9',
      () => ratings.randomSplit(0.9 as never),
    ],
    [
      'timeSplit takes weights such as [0.9, 0.1], or { before: time }',
      () => ratings.timeSplit({ after: 3 } as never),
    ],
    ['the schema is an object', () => session.from([], { replayable: true } as never)],
    [
      'session.from takes Arrow record batches; for plain objects there is session.fromRows(rows)',
      () => session.from([{ user: 1 }] as never),
    ],
  ])('%s', async (message, run) => {
    expect((await errorOf(run)).message).toMatch(message);
  });

  it('is easily made from plain objects', async () => {
    expect(await session.from(tableFromJSON([{ user: 'a', item: 'b', rating: 1 }]).batches).count()).toBe(1);
  });
});

it('a split has a data set for each weight, in its type too', async () => {
  const timed = session.from(
    tableFromJSON([1, 2, 3, 4].map((timestamp) => ({ user: 'a', item: `${timestamp}`, timestamp }))).batches,
  );
  const three: [Dataset, Dataset, Dataset] = ratings.randomSplit([0.8, 0.1, 0.1], { seed: 42 });
  const weighed: [Dataset, Dataset] = await timed.timeSplit([0.5, 0.5]);
  const before: [Dataset, Dataset] = await timed.timeSplit({ before: 2 });
  const weights: readonly number[] = [1, 1];
  const any: Dataset[] = ratings.randomSplit(weights);
  expect([three, weighed, before, any].map((parts) => parts.length)).toEqual([3, 2, 2, 2]);
  expect(await Promise.all([...weighed, ...before].map(async (part) => part.count()))).toEqual([2, 2, 1, 3]);
});
