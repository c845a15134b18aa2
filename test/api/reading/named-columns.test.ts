/**
 * Columns that a data set names once, or that are recognised by their names, in every method that takes the
 * data set.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordBatch } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, chooseTrainer, type Dataset, type Model, type ProgressEvent, SGD } from '../../../index.ts';
import { batchOf, randomRatings } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const rows = randomRatings(3, 30, 40, 500);
const folder = temporaryFolder();
const session = await cpuSession({ workers: 1 });

/** The ratings in columns with other names, and one column that cannot be an id. */
function batchNamed(user: string, item: string, rating: string, time = 'when'): RecordBatch {
  return batchOf({
    row: { type: 'int32', values: rows.map((_, at) => at) },
    [user]: { type: 'int32', values: rows.map((row) => row.user) },
    [item]: { type: 'int32', values: rows.map((row) => row.item) },
    [rating]: { type: 'float64', values: rows.map((row) => row.rating) },
    [time]: { type: 'float64', values: rows.map((row) => (row.user * 31 + row.item) % 97) },
  });
}

const names = { user: 'who', item: 'what', rating: 'how', timestamp: 'when' } as const;
const named = () => session.from([batchNamed('who', 'what', 'how')], undefined, { columns: names });
const recognised = () => session.from([batchNamed('userId', 'movieId', 'stars', 'ts')]);
const als = new ALS({ rank: 2, maxIter: 2, seed: 1 });

async function factorsOf(model: Model): Promise<readonly number[]> {
  return [...model.userArrays.values, ...model.itemArrays.values];
}

async function listOf(data: Dataset): Promise<object[]> {
  const all: object[] = [];
  for await (const batch of data) all.push(...batch.toArray().map((row) => row.toJSON() as object));
  return all;
}

describe('ids that are text because of one value', () => {
  const file = join(folder, 'one-text.csv');
  const columns = { user: 'userId', item: 'movieId', rating: 'stars' } as const;
  beforeAll(() => {
    const lines = rows.map(({ user, item, rating }, at) => `${user},${at === 7 ? 'n/a?' : item},${rating}`);
    writeFileSync(file, `userId,movieId,stars\n${lines.join('\n')}\n`);
  });

  it.each([
    ['named', { columns }],
    ['recognised', {}],
  ] as const)('are reported once, with the line, where columns are %s', async (_, options) => {
    const events: ProgressEvent[] = [];
    const ratings = session.read.csv(file, options);
    for (let fit = 0; fit < 2; fit++) await als.fit(ratings, { onEvent: (event) => events.push(event) });
    const found = events.filter((event) => event.type === 'warning' && event.code === 'ids-read-as-text');
    expect(found).toEqual([
      {
        type: 'warning',
        code: 'ids-read-as-text',
        text: `movieId is read as text because of line 9 of ${file}, "n/a?"; the rest of the first ${rows.length} rows has whole numbers. Give types: { movieId: 'int64' } to find such rows, and onBadRows: 'skip' to leave them out`,
      },
    ]);
  });

  it('are not reported where the type is given, and such rows can be left out', async () => {
    const events: ProgressEvent[] = [];
    const ratings = session.read.csv(file, { types: { movieId: 'int64' } });
    const model = await new ALS({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(ratings, {
      onEvent: (event) => events.push(event),
    });
    expect(events.filter((event) => event.type === 'warning' && event.code === 'ids-read-as-text')).toEqual(
      [],
    );
    expect(model.training?.badRows).toBe(1);
  });
});

describe('a data set that names its columns', () => {
  it('is split, trained on, evaluated, ranked, explained and excluded without naming them again', async () => {
    const [train, test] = named().randomSplit([0.8, 0.2], { seed: 4 });
    const model = await als.fit(train, { validation: test });
    expect(model.columns).toEqual({ user: 'who', item: 'what', rating: 'how', prediction: 'prediction' });
    expect((await model.evaluate(test)).pairs).toBe(await test.count());
    expect(
      (await model.evaluateRanking(test, { exclude: train, minRating: 3, resamples: 0 })).metrics['ndcg@10'],
    ).toBeGreaterThan(0);
    expect(Object.keys((await listOf(model.predict(test)))[0])).toEqual([
      'row',
      'who',
      'what',
      'how',
      'when',
      'prediction',
    ]);
    const seen = await model.exclusions(train);
    expect([seen.pairs, seen.unknownPairs]).toEqual([await train.count(), 0]);
    const user = rows[0].user;
    const own = new Set(rows.filter((row) => row.user === user).map((row) => row.item));
    const lists = (await listOf(model.recommendForAllUsers(5, { exclude: named() }))) as {
      who: number;
      what: number;
    }[];
    expect(lists.filter(({ who, what }) => who === user && own.has(what))).toEqual([]);
    expect((await model.explain({ user, ratings: named() }, rows[0].item)).contributions.length).toBe(
      own.size,
    );
    expect((await model.foldIn(named())).users).toBeGreaterThan(0);
    expect((await model.update(named(), { maxIter: 1 })).columns.user).toBe('who');
  });

  it('gives the model that options give', async () => {
    const bare = session.from([batchNamed('who', 'what', 'how')]);
    const told = await new ALS({
      rank: 2,
      maxIter: 2,
      seed: 1,
      userCol: 'who',
      itemCol: 'what',
      ratingCol: 'how',
    }).fit(bare);
    expect(await factorsOf(await als.fit(named()))).toEqual(await factorsOf(told));
    expect((await new SGD({ rank: 2, maxIter: 1 }).fit(named())).columns.item).toBe('what');
    expect(String(await als.plan(named()))).toContain('Physical plan');
    expect((await chooseTrainer(named(), { rank: 2 })).reason).not.toBe('');
  });

  it('is cut by time, and its last ratings left out, by the time that it names', async () => {
    const [before, after] = await named().timeSplit({ before: 50 });
    expect([before, after].map(({ columns }) => columns)).toEqual([names, names]);
    expect((await before.count()) + (await after.count())).toBe(rows.length);
    const { test } = await named().leaveLastOut();
    expect(await test.count()).toBeGreaterThan(10);
    expect(
      (await new ALS({ rank: 2, maxIter: 1, onDuplicates: 'last' }).fit(named())).training?.duplicates,
    ).toBe(0);
  });

  it('says so where a trainer or a split names others', async () => {
    await expect(new ALS({ userCol: 'what' }).fit(named())).rejects.toThrow(
      'the data set names its user column "who", but userCol is "what"',
    );
    await expect(new SGD({ ratingCol: 'when' }).fit(named())).rejects.toThrow(
      'the data set names its rating column "how", but ratingCol is "when"',
    );
    expect(() => named().randomSplit([1, 1], { itemCol: 'who' })).toThrow(
      'the data set names its item column "what", but itemCol is "who"',
    );
    await expect(named().timeSplit([1, 1], { timestampCol: 'row' })).rejects.toThrow(
      'the data set names its timestamp column "when", but timestampCol is "row"',
    );
  });

  it('may have other names than the data set beside it, and than the model', async () => {
    const model = await als.fit(named(), {
      validation: session.from([batchNamed('u', 'i', 'r')], undefined, {
        columns: { user: 'u', item: 'i', rating: 'r' },
      }),
    });
    expect(model.training?.coldPairs).toBe(0);
    expect((await model.evaluate(recognised())).coldPairs).toBe(0);
    const notes: string[] = [];
    const onEvent = (event: ProgressEvent) => void (event.type === 'note' && notes.push(event.text));
    for await (const batch of await model
      .predict(session.from([batchNamed('user', 'movieId', 'rating')]))
      .stream({ onEvent }))
      expect(batch.numRows).toBe(rows.length);
    expect(notes).toEqual([
      'columns are recognised by their names: user is "user", item is "movieId"; others are chosen with userCol, itemCol',
    ]);
    expect((await model.exclusions(recognised())).unknownPairs).toBe(0);
  });

  it('refuses roles and names that cannot be', async () => {
    expect(() => session.read.csv('x', { columns: { users: 'a' } as object })).toThrow(
      'unknown option users of the option columns of read.csv. Did you mean user? There are: user, item, rating, timestamp',
    );
    expect(() => session.read.parquet('x', { columns: { user: '' } })).toThrow(
      'the user column must be the name of a column, got ""',
    );
    expect(() => session.from([], undefined, { columns: 5 as unknown as object })).toThrow('got 5');
    const wrong = session.from([batchNamed('who', 'what', 'how')], undefined, {
      columns: { user: 'whoo', item: 'what', rating: 'how' },
    });
    await expect(als.fit(wrong)).rejects.toThrow('there is no column "whoo"');
  });
});

describe('a data set that names nothing', () => {
  it('has columns with known names recognised, and a note says which', async () => {
    const events: ProgressEvent[] = [];
    const model = await als.fit(recognised(), { onEvent: (event) => events.push(event) });
    expect(await factorsOf(model)).toEqual(await factorsOf(await als.fit(named())));
    expect(events).toContainEqual({
      type: 'note',
      text: 'columns are recognised by their names: user is "userId", item is "movieId", rating is "stars"; others are chosen with userCol, itemCol, ratingCol',
    });
    const { test } = await recognised().leaveLastOut({ onEvent: (event) => events.push(event) });
    expect(events).toContainEqual({
      type: 'note',
      text: 'a column is recognised by its name: timestamp is "ts"; others are chosen with timestampCol',
    });
    expect((await model.evaluate(test)).coldPairs).toBe(0);
  });

  it('is an error with the candidates where two columns could be the item', async () => {
    const two = session.from([batchNamed('userId', 'movieId', 'rating', 'bookId')]);
    await expect(als.fit(two)).rejects.toThrow(
      /which column is the item\? "movieId" and "bookId" may be.*Name it with itemCol/,
    );
    expect((await new ALS({ rank: 2, maxIter: 1, itemCol: 'movieId' }).fit(two)).columns.item).toBe(
      'movieId',
    );
    expect((await als.fit(two.withColumnNames({ item: 'movieId' }))).columns.item).toBe('movieId');
  });

  it('has ratings of 1 in implicit data without a column of ratings, and its own where one is recognised', async () => {
    const implicit = new ALS({ rank: 2, maxIter: 1, implicitPrefs: true });
    const events: ProgressEvent[] = [];
    const pairs = session.from([
      batchOf({
        userId: { type: 'int32', values: rows.map(({ user }) => user) },
        movieId: { type: 'int32', values: rows.map(({ item }) => item) },
      }),
    ]);
    const model = await implicit.fit(pairs, { onEvent: (event) => events.push(event) });
    expect(model.columns).toMatchObject({ user: 'userId', item: 'movieId', rating: 'rating' });
    expect(events).toContainEqual({
      type: 'note',
      text: expect.stringContaining('there is no column "rating"') as string,
    });
    expect((await implicit.fit(recognised())).columns.rating).toBe('stars');
  });
});
