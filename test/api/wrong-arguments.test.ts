/**
 * Calls every public method with arguments of wrong types. Each argument in turn gets each of the values.
 * The call must succeed or throw one of the library's errors, never TypeError or RangeError.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as library from '../../index.ts';
import { ALS, col, type Dataset, FactorFlowError, lit, Model, Session, SGD } from '../../index.ts';
import { everyNth } from '../support/deep.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-wrong-'));
const titles = join(import.meta.dirname, '../../examples/data/movietweetings-100k/titles.parquet');
const saved = join(folder, 'model');
let session: Session;
let ratings: Dataset;
let model: Model;

beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 1 });
  ratings = session.from(ratingBatches(randomRatings(4, 20, 15, 150)));
  model = await new ALS({ rank: 2, maxIter: 1 }).fit(ratings);
  await model.save(saved);
  vi.spyOn(console, 'log').mockReturnValue(undefined);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await session.close();
  rmSync(folder, { recursive: true, force: true });
});

// Also a path, below which methods may write.
const aText = join(folder, 'text');
const plain = [undefined, null, true, Number.NaN, -1, 1.5, 1e308, '', aText, 1n, Symbol('s'), () => null];
const objects = [[], [null], [[]], {}, { a: null }, Object.create(null) as object, new Map()];
const dated = [new Date(Number.NaN), { before: null }, { before: Number.NaN }];
const rated = [null, {}, { item: null, rating: 1 }, { item: 1, rating: 1e308 }, { item: 1, rating: '' }];
/** Options with a value of a wrong type; each method has some of these options. */
const named =
  `signal onEvent names exclude coldStart similarity columns validation plan userCol timestampCol types filter
  delimiter onBadRows onDuplicates seed by regParam k metrics checkpointDir workers memoryBudget device ids format`
    .split(/\s+/)
    .flatMap((name, at) => everyNth([{ [name]: 1 }, { [name]: null }, { [name]: [null] }], 3, at));
const values: readonly unknown[] = [
  ...plain,
  ...objects,
  ...dated,
  ...rated.map((one) => ({ ratings: [one] })),
  ...rated.map((one) => [one]),
  ...named,
];

type Wrong = (...args: readonly never[]) => unknown;

/** The methods with correct arguments, by the object on which they are called. */
const tables: Readonly<
  Record<string, () => readonly [object, Readonly<Record<string, readonly unknown[]>>]>
> = {
  Session: () => [
    session,
    {
      from: [[], undefined, {}],
      fromRows: [[{ a: 1 }], {}],
      source: [{}, {}],
      loadModel: [saved],
      readItemNames: [titles, {}],
    },
  ],
  'session.read': () => [
    session.read,
    Object.fromEntries(
      ['parquet', 'csv', 'text', 'ndjson', 'arrow', 'any'].map((name) => [name, [titles, {}]]),
    ),
  ],
  Model: () => [
    model,
    {
      recommend: [1, 3, {}],
      recommendForUsers: [[1], 3, {}],
      recommendForItems: [[1], 3, {}],
      recommendForAllUsers: [3, {}],
      recommendForAllItems: [3, {}],
      similarItems: [[1], 3, {}],
      similarUsers: [[1], 3, {}],
      explain: [[{ item: 1, rating: 3 }], 1, {}],
      predict: [ratings, {}],
      evaluate: [ratings, {}],
      evaluateRanking: [ratings, {}],
      update: [ratings, {}],
      planUpdate: [ratings, {}],
      foldIn: [ratings, {}],
      foldInItems: [ratings, {}],
      exclusions: [ratings, {}],
      save: [join(folder, 'again'), { overwrite: true }],
      exportFactors: [join(folder, 'export'), { overwrite: true }],
      hasUser: [1],
      hasItem: [1],
    },
  ],
  Dataset: () => [
    ratings,
    {
      select: ['user'],
      drop: ['user'],
      withColumnRenamed: ['user', 'who'],
      withColumn: ['a', lit(1)],
      withColumns: [{ a: lit(1) }],
      filter: [col('user').ge(1)],
      where: [col('user').ge(1)],
      cast: [{ rating: 'float64' }, 'error'],
      dropNulls: ['user'],
      fillNulls: [{ rating: 0 }],
      mapBatches: [(batch: unknown) => batch, {}],
      join: [ratings.select('user'), 'user', 'inner'],
      crossJoin: [ratings.select(col('user').as('other')), {}],
      asOfJoin: [ratings, { on: 'user', at: 'item', suffix: '_right' }],
      explode: ['user', {}],
      orderBy: ['user'],
      sort: ['user'],
      limit: [3],
      sample: [0.5, {}],
      dropDuplicates: ['user'],
      repartition: [2, 'user'],
      pipe: [{}],
      randomSplit: [[1, 1], {}],
      kFold: [2, {}],
      union: [ratings],
      timeSplit: [{ before: 1 }, {}],
      leaveOut: [1, {}],
      leaveLastOut: [{}],
      withColumnNames: [{}],
      count: [{}],
      stream: [{}],
      collect: [{}],
      toArray: [{}],
      first: [{}],
      show: [1, {}],
      describe: ['user'],
      explain: [{}],
      schema: [{}],
      runInto: [{}, {}],
    },
  ],
  'dataset.write': () => [
    ratings.write,
    Object.fromEntries(
      ['parquet', 'csv', 'ndjson', 'arrow'].map((name) => [name, [join(folder, name), { overwrite: true }]]),
    ),
  ],
  'Trainers and statics': () => [
    {
      'Session.create': async (options: never) => (await Session.create(options)).close(),
      'Session.withoutDevices': (options: never) => Session.withoutDevices(options),
      'Model.load': (...args: readonly [never, never]) => Model.load(...args),
      ALS: (options: never) => new ALS(options),
      SGD: (options: never) => new SGD(options),
      'ALS.spark': (options: never) => ALS.spark(options),
      'ALS.fit': (...args: readonly [never, never]) => new ALS({ rank: 2, maxIter: 1 }).fit(...args),
      'SGD.fit': (...args: readonly [never, never]) => new SGD({ rank: 2, maxIter: 1 }).fit(...args),
      'ALS.plan': (...args: readonly [never, never]) => new ALS({ rank: 2 }).plan(...args),
      ItemNames: (entries: never) => new library.ItemNames(entries),
    },
    {
      'Session.create': [{ device: 'cpu', workers: 1 }],
      'Session.withoutDevices': [{}],
      'Model.load': [session, saved],
      ALS: [{}],
      SGD: [{}],
      'ALS.spark': [{}],
      'ALS.fit': [ratings, {}],
      'SGD.fit': [ratings, {}],
      'ALS.plan': [ratings, {}],
      ItemNames: [[]],
    },
  ],
  Functions: () => [
    library,
    Object.fromEntries(
      Object.entries(library)
        .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
        .map(([name]) => [name, [col('rating'), col('user')]]),
    ),
  ],
};

/** Each argument of each method in turn with each of the values. */
function* casesOf(methods: Readonly<Record<string, readonly unknown[]>>) {
  for (const [method, right] of Object.entries(methods))
    for (const at of right.keys())
      for (const value of values)
        yield { method, at, value, args: right.with(at, value) as unknown as readonly never[] };
}

/** Reads what a call gives, since rows are read later. */
async function used(given: unknown): Promise<void> {
  const result = await given;
  const rows = Array.isArray(result) ? (result as unknown[]) : [result];
  for (const one of rows) if (one instanceof library.Dataset) await one.count();
}

function text(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  return JSON.stringify(value) ?? 'an object';
}

describe.each(Object.keys(tables))('wrong arguments of %s', (name) => {
  it('give errors of the library alone', async () => {
    const [target, methods] = tables[name]();
    const foreign: string[] = [];
    for (const { method, at, value, args } of casesOf(methods)) {
      try {
        await used((target as Readonly<Record<string, Wrong>>)[method](...args));
      } catch (error) {
        if (!(error instanceof FactorFlowError))
          foreign.push(`${method}, argument ${at + 1} ${text(value)}: ${String(error)}`);
      }
    }
    expect(foreign).toEqual([]);
  });
});

describe('values that no model can use', () => {
  it('are refused with their value', async () => {
    const item = model.itemArrays.ids[0];
    const by = (item: unknown, rating: unknown) =>
      model.recommend({ ratings: [{ item: item as number, rating: rating as number }] }, 3);
    await expect(model.recommend(true as never, 3)).rejects.toThrow(
      'recommend takes an id as number, text or bigint, got true',
    );
    await expect(model.recommend({ ratings: [null] } as never, 3)).rejects.toThrow(
      'a rating is an object such as { item: 5, rating: 4 }, got null',
    );
    await expect(by(item, 1e308)).rejects.toThrow(
      `the rating of item ${item} must be a finite number, got 1e+308`,
    );
    await expect(by(null, 3)).rejects.toThrow('got null');
  });

  it('are counted where ratings vanish as float32', async () => {
    const few = session.fromRows(
      [1, 2, 3].map((user) => ({ user, item: user, rating: user === 3 ? 2.5 : 1e-300 })),
    );
    const texts: string[] = [];
    await new ALS({ rank: 2, maxIter: 1 }).fit(few, {
      onEvent: (event) => void (event.type === 'warning' && texts.push(event.text)),
    });
    expect(texts).toContain(
      '2 ratings other than 0 are too small for float32, and taken as 0; scale the ratings',
    );
  });
});
