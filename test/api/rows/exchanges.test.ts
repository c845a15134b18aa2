/** Operators over all rows, in memory and through files, and the absence of leftovers if they end early. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type CapacityError,
  col,
  collectSet,
  count,
  type Dataset,
  last,
  lit,
  mean,
  median,
  rowNumber,
  functions,
  Session,
  sum,
} from '../../../index.ts';
import { exchangeRoomOf } from '../../../api/run-rows.ts';
import { ExchangeRoom } from '../../../operators/exchange/exchange-room.ts';
import { hostMeter } from '../../../engine/run/memory-meter.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { withTmpfs } from '../../support/tmpfs.ts';
import { isDeep } from '../../support/deep.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const ROWS = 6000;
const PARTS = 16;

beforeAll(async () => {
  const line = (i: number) =>
    `${i},${(i * 31) % 997},${i % 5 === 0 ? '' : `word ${i % 31}`},${(i % 10) / 2}\n`;
  const lines = Array.from({ length: ROWS }, (_, i) => line(i));
  writeFileSync(path('rows.csv'), `row,user,word,rating\n${lines.join('')}`);
  await using session = await open(2);
  await session.read.csv(path('rows.csv')).write.parquet(path('rows.parquet'), { rowGroupSize: 1000 });
});

interface Options {
  readonly inFiles?: boolean;
  readonly spillDir?: string;
}

/** The number of times that exchanges found no room. */
let refused = 0;

/** `inFiles`: exchanges have no room in memory. */
async function open(workers: number, { inFiles = false, spillDir = path('spill') }: Options = {}) {
  const session = await Session.create({ device: 'cpu', workers, splitBytes: 4000, spillDir });
  const room = exchangeRoomOf(session);
  if (inFiles) vi.spyOn(room, 'take').mockImplementation(() => ++refused === 0);
  return session;
}

const rowsOf = (session: Session): Dataset => session.read.parquet(path('rows.parquet'));

/** Rows of a file, a stream, and groups; columns come in different orders. */
const united = (rows: Dataset): Dataset =>
  rows
    .select('row', 'word', 'rating')
    .union((rows.session as Session).fromRows(FEW).select('word', 'rating', 'row'))
    .union(rows.groupBy('rating').agg(last('word').as('word'), last('row').as('row')));
const FEW = Array.from({ length: 50 }, (_, i) => ({
  row: -i,
  word: i % 3 === 0 ? null : `few ${i % 7}`,
  rating: i + 0.5,
}));

const wide = {
  groups: (rows) => rows.groupBy('user', 'word').agg(count(), mean('rating')),
  distinct: (rows) => rows.select('user', 'rating').distinct(),
  'the first rows of keys': (rows) => rows.dropDuplicates('user', 'word'),
  join: (rows) =>
    rows.join(rows.filter(col('rating').gt(1)).select('row', col('word').as('other')), 'row', 'left'),
  order: (rows) => rows.orderBy('user', col('rating').desc()),
  parts: (rows) => rows.repartition(PARTS, 'user'),
  'groups of joined and sorted rows': (rows) =>
    rows
      .orderBy('word')
      .join(rows.dropDuplicates('user').select('user'), 'user')
      .groupBy('word')
      .agg(count()),
  windows: (rows) =>
    rows.select(
      'row',
      rowNumber()
        .over({ partitionBy: 'user', orderBy: [col('rating').desc(), 'row'] })
        .as('n'),
    ),
  'windows of one partition': (rows) =>
    rows.select(
      'row',
      sum('user')
        .over({ orderBy: ['word', 'row'] })
        .as('s'),
      sum('user').over({}).as('all'),
    ),
  'groups of a union': (rows) => united(rows).groupBy('word').agg(count(), mean('rating'), last('row')),
  'order of a union': (rows) => united(rows).filter(col('row').gt(20)).orderBy('word').select('row', 'word'),
  'a union joined with a union': (rows) =>
    united(rows).join(united(rows).select('row', col('word').as('w')), 'row'),
} satisfies Record<string, (rows: Dataset) => Dataset>;
const cases = Object.entries(wide);

/** Plans that hold the rows of one key; `one` is the same in all rows. */
const large: Readonly<Record<string, (rows: Dataset) => Dataset>> = {
  collectSet: (rows) => rows.groupBy('one').agg(collectSet('long').as('s')).explode('s'),
  median: (rows) => many(rows).groupBy('one').agg(median('row').as('m')),
  pivot: (rows) => many(rows).groupBy('one').pivot('one', [true]).agg(median('row')),
  join: (rows) =>
    rows.filter(col('row').lt(9)).join(rows.select('one', col('long').as('other')), 'one', 'full'),
  asOfJoin: (rows) => rows.asOfJoin(rows.select('one', 'row', col('long').as('w')), { on: 'one', at: 'row' }),
  'a window up to the last row': (rows) =>
    rows.withColumn('n', last('row').over({ partitionBy: 'one', orderBy: 'row', rows: [0, Infinity] })),
  'a window of equal keys': (rows) => rows.withColumn('n', count().over({ orderBy: 'one' })),
};
const many = (rows: Dataset) =>
  rows.crossJoin((rows.session as Session).fromRows(Array.from({ length: 9 }, (_, i) => ({ i }))));

/** Ranges, and hashes of two inputs. */
const ending = cases.filter(([name]) => ['order', 'join'].includes(name));

const textOf = (rows: unknown) =>
  JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));

describe('with any number of threads, in memory and by files', () => {
  /** Threads take longer to begin than all of the plans. */
  const sessions: { readonly session: Session; readonly inFiles: boolean }[] = [];
  beforeAll(async () => {
    for (const [workers, inFiles] of [
      [1, false],
      [2, true],
      [3, false],
    ] as const)
      sessions.push({ inFiles, session: await open(workers, { inFiles, spillDir: path('same') }) });
  });
  afterAll(async () => {
    // The first session created the folder, so it removes it, unless another session has files there.
    for (const { session } of sessions.toReversed()) await session.close();
    expect(existsSync(path('same'))).toBe(false);
  });

  it.each(cases)('%s are the same rows in the same order', async (_name, make) => {
    const texts = new Set<string>();
    for (const { session, inFiles } of sessions) {
      refused = 0;
      texts.add(textOf(await make(rowsOf(session)).toArray()));
      expect(refused > 0).toBe(inFiles);
    }
    expect(texts.size).toBe(1);
    expect([...texts][0].length).toBeGreaterThan(100);
  });
});

/** Runs `work`. After it no memory, reservation or file of an exchange is left, and the plan runs again. */
async function leavesNothing(
  session: Session,
  make: (rows: Dataset) => Dataset,
  inFiles: boolean,
  work: (plan: Dataset, stop: AbortController) => Promise<void>,
): Promise<void> {
  const [room, before] = [exchangeRoomOf(session), hostMeter.now];
  if (inFiles) vi.spyOn(room, 'take').mockReturnValue(false);
  const plan = make(rowsOf(session));
  const expected = await plan.count();
  expect(hostMeter.now).toBe(before);
  await work(plan, new AbortController());
  // A cancelled stream ends after a tenth of a second at the latest, its tasks a little later.
  await vi.waitUntil(() => hostMeter.now === before, wait);
  vi.restoreAllMocks();
  expect(room.take(room.bytes)).toBe(true);
  room.give(room.bytes);
  expect(await plan.count()).toBe(expected);
  expect(hostMeter.now).toBe(before);
  const [own, ...others] = existsSync(path('spill')) ? readdirSync(path('spill')) : [];
  expect(others).toEqual([]);
  if (own !== undefined) await vi.waitUntil(() => readdirSync(join(path('spill'), own)).length === 0, wait);
}

async function pulled(plan: Dataset, signal: AbortSignal, each: () => void = () => undefined) {
  for await (const _ of await plan.stream({ signal })) each();
}

const cancelled = { name: 'CancelledError' };
const wait = { timeout: 120_000 };

describe.each(ending)('%s that end early', (name, make) => {
  const others = name === 'order';
  let session: Session;
  beforeAll(async () => {
    session = await open(2);
  });
  afterAll(async () => {
    await session.close();
    expect(existsSync(path('spill'))).toBe(false);
  });

  it.each(isDeep ? [false, true] : [others])(
    'while rows are divided (in files: %s) leave nothing',
    async (inFiles) => {
      await leavesNothing(session, make, inFiles, async (plan, stop) => {
        let takes = 0;
        const room = exchangeRoomOf(session);
        const { take } = ExchangeRoom.prototype;
        vi.spyOn(room, 'take').mockImplementation((bytes) => {
          if (++takes === 2) stop.abort();
          return !inFiles && take.call(room, bytes);
        });
        await expect(pulled(plan, stop.signal)).rejects.toMatchObject(cancelled);
        expect(takes).toBeGreaterThan(1);
      });
    },
  );

  it.each(isDeep ? [false, true] : [!others])(
    'while parts are read (in files: %s) leave nothing',
    async (inFiles) => {
      await leavesNothing(session, make, inFiles, async (plan, stop) => {
        await expect(pulled(plan, stop.signal, () => stop.abort())).rejects.toMatchObject(cancelled);
      });
      await leavesNothing(session, make, inFiles, async (plan) => {
        for await (const _ of plan) break;
      });
    },
  );
});

describe('budgets', () => {
  afterAll(() => {
    expect(existsSync(path('least'))).toBe(false);
  });
  const within = (memoryBudget: string) =>
    Session.create({ device: 'cpu', workers: 1, splitBytes: 4000, memoryBudget, spillDir: path('least') });

  it('that are too small are refused with the least, which is enough by way of files', async () => {
    await using little = await within('64MiB');
    expect(await rowsOf(little).count()).toBe(ROWS);
    const refusal: unknown = await wide
      .order(rowsOf(little))
      .toArray()
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      name: 'CapacityError',
      exitCode: 4,
      message: expect.stringMatching(
        /the stage "exchange by ranges of user, rating.*" needs about .* \(its tasks .*, the process itself .*\) but the memory budget is 64\.0 MiB/,
      ),
      details: { phase: 'plan', advice: expect.stringMatching(/^Raise memoryBudget to [\d.]+ MiB or more/) },
    });
    expect(await wide.order(rowsOf(little)).explain()).toMatch(
      /exchange by ranges of user, rating to \d+ parts, about [\d.]+ KiB: the budget is too small, since the process takes/,
    );
    const least = Number(/Raise memoryBudget to ([\d.]+) MiB/.exec(String(refusal))?.[1]);
    expect(least).toBeGreaterThan(100);
    await using enough = await within(`${Math.ceil(least)}MiB`);
    expect((await wide.order(rowsOf(enough)).toArray()).length).toBe(ROWS);
  });

  it.each(Object.entries(large).filter((_, i) => isDeep || i % 3 === 0))(
    'that do not hold one large part are refused with the least: %s',
    async (_name, make) => {
      await using session = await open(2);
      const text = 'a text of so many letters that rows are much larger than what tasks hold besides, ';
      const long = functions.concat(text, text, col('row').cast('utf8'));
      const rows = rowsOf(session).withColumns({ one: col('rating').ge(0), long });
      const ordered = async () =>
        (await make(rows)
          .orderBy(...Object.keys((await make(rows).first())!))
          .toArray()) as object[];
      const wanted = textOf(await ordered());
      let budget = 2 ** 18;
      vi.spyOn(exchangeRoomOf(session), 'lease').mockImplementation(() =>
        new ExchangeRoom({ budget, process: 100_000, garbage: 0 }).lease(),
      );
      const refusals: string[] = [];
      for (;;) {
        const found = await ordered().catch((error: unknown) => error as CapacityError);
        if (Array.isArray(found)) {
          expect(textOf(found)).toBe(wanted);
          break;
        }
        expect(found).toMatchObject({ name: 'CapacityError' });
        const [, least, unit] = /Raise memoryBudget to ([\d.]+) ([KM])iB or more/.exec(found.message)!;
        expect(1.05 * Number(least) * { K: 2 ** 10, M: 2 ** 20 }[unit]!).toBeGreaterThan(budget);
        // The number is rounded.
        budget = 1.05 * Number(least) * { K: 2 ** 10, M: 2 ** 20 }[unit]!;
        refusals.push(found.message);
      }
      expect(refusals.some((text) => /largest part|whole partitions|at a time/.test(text))).toBe(true);
    },
  );

  it('leave to parts what the process and the tasks of a run do not take', async () => {
    await using session = await within('256MiB');
    const room = exchangeRoomOf(session);
    const free = room.bytes;
    const stream = (await wide.order(rowsOf(session)).stream())[Symbol.asyncIterator]();
    await stream.next();
    expect(room.bytes).toBeLessThan(free);
    await stream.return?.();
    expect(room.bytes).toBe(free);
  });
});

/** Changes all bytes of a file, which is never shorter meanwhile. */
function overwrite(file: string): void {
  const open = openSync(file, 'r+');
  writeSync(open, 'x'.repeat(statSync(file).size));
  closeSync(open);
}

describe('the files of exchanges', () => {
  it('that the disk does not hold are an error of capacity', async ({ skip }) => {
    await withTmpfs(skip, path('full'), 'size=64k', async (spillDir) => {
      for (const make of [wide.order, wide.parts]) {
        await using session = await open(2, { inFiles: true, spillDir });
        const before = hostMeter.now;
        await expect(make(rowsOf(session)).toArray()).rejects.toMatchObject({
          name: 'CapacityError',
          exitCode: 4,
          message: expect.stringContaining('the disk is full'),
          details: { phase: 'spill', advice: expect.stringContaining('choose another spillDir') },
        });
        expect(hostMeter.now).toBe(before);
        expect(await rowsOf(session).count()).toBe(ROWS);
      }
      expect(readdirSync(spillDir)).toEqual([]);
    });
  });

  it.each([
    ['cut', 'is cut off', (file: string) => truncateSync(file, 100)],
    ['written to', 'has another checksum', overwrite],
  ])('that are %s by another program are an error of data', async (_how, text, change) => {
    await using session = await open(1, { inFiles: true });
    let seen = 0;
    const reading = async () => {
      for await (const _ of rowsOf(session).repartition(PARTS, 'user')) {
        if (seen++ > 0) continue;
        const [own] = readdirSync(path('spill'));
        for (const file of readdirSync(join(path('spill'), own))) change(join(path('spill'), own, file));
      }
    };
    await expect(reading()).rejects.toMatchObject({
      name: 'DataError',
      message: expect.stringContaining(text),
    });
    expect(await rowsOf(session).repartition(PARTS, 'user').count()).toBe(ROWS);
  });

  it('of a process that was killed go with the next session that has files there', async () => {
    const spillDir = path('killed');
    mkdirSync(spillDir);
    const dist = new URL('../../../dist/', import.meta.url);
    const script = `const { Session } = await import(${JSON.stringify(new URL('index.js', dist).href)});
      const { exchangeRoomOf } = await import(${JSON.stringify(new URL('api/run-rows.js', dist).href)});
      const session = await Session.create({ device: 'cpu', workers: 1, splitBytes: 4000, memoryBudget: '256MiB',
        spillDir: ${JSON.stringify(spillDir)} });
      exchangeRoomOf(session).take(exchangeRoomOf(session).bytes);
      const rows = session.read.parquet(${JSON.stringify(path('rows.parquet'))}).repartition(${PARTS}, 'user');
      for await (const batch of rows) { console.log(batch.numRows); await new Promise((go) => setTimeout(go, 1e6)); }`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const [left] = readdirSync(spillDir);
    expect(readdirSync(join(spillDir, left)).length).toBeGreaterThan(0);
    await using session = await open(1, { inFiles: true, spillDir });
    for await (const _ of rowsOf(session).repartition(PARTS, 'user'))
      expect(readdirSync(spillDir)).not.toContain(left);
    expect(readdirSync(spillDir)).toHaveLength(1);
  });
});

it('rows from files stay as they are while others are read: a join whose rows are too many for tasks to return', async () => {
  await using session = await open(1, { inFiles: true });
  const rows = rowsOf(session).withColumn('one', lit(1));
  const words = rows.select('one', col('word').as('other'), col('row').as('from'));
  let found = 0;
  for await (const batch of rows.join(words, 'one')) {
    const [others, from] = ['other', 'from'].map((name) => batch.getChild(name)!);
    for (let i = 0; i < batch.numRows; i++) {
      const row = Number(from.get(i));
      if (others.get(i) !== (row % 5 === 0 ? null : `word ${row % 31}`))
        throw new Error(`row ${row}: ${others.get(i)}`);
    }
    found += batch.numRows;
    if (found > 200_000) break;
  }
  expect(found).toBeGreaterThan(200_000);
});
