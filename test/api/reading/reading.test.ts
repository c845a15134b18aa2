/** Ratings that the session's threads read from splits are the same as ratings read as one stream. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { RatingInput, type RatingOptions } from '../../../api/rating-input.ts';
import type { ProgressEvent } from '../../../engine/events.ts';
import { keyArrays } from '../../../engine/keys/key-column.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { ALS, type Dataset, type Session } from '../../../index.ts';
import { keepKnown } from '../../../operators/ratings/ids/known-pairs.ts';
import { oneBlock } from '../../../operators/ratings/ratings.ts';
import { sortRatings } from '../../../operators/ratings/sort-ratings.ts';
import { duckdb } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

/** Users, items and ratings of 40,000 rows as SQL over i. */
const kinds = {
  near: ['(i * 7919 % 4001)::INTEGER', '(i * 104729 % 997 - 500)::INTEGER'],
  far: ['((i * 7919 % 4001) * 500009)::INTEGER', '(i * 104729 % 997 * 1000003 - 500000000)::INTEGER'],
  'near int64': ['(i * 7919 % 4001)::BIGINT', '(i * 104729 % 997 - 500)::BIGINT'],
  'far int64': [
    '(i * 7919 % 4001 * 1234567890123 - 9876543210)::BIGINT',
    '(i % 997 + CASE WHEN i > 39000 THEN 5000000000 ELSE 0 END)::BIGINT',
  ],
  text: ["'user ' || (i * 7919 % 4001)", 'chr((97 + i % 26)::INTEGER) || (i * 104729 % 97)'],
} as const;

async function write(
  name: string,
  [user, item]: readonly string[],
  rows: string,
  options: string,
): Promise<void> {
  await (
    await duckdb()
  ).run(
    `COPY (SELECT ${user} AS "user", ${item} AS item, (i % 10 / 2)::FLOAT AS rating, i % 13 AS timestamp FROM (${rows}) t(i)) TO '${path(name)}' (FORMAT parquet, ${options})`,
  );
}

const all = 'SELECT * FROM range(40000)';

beforeAll(async () => {
  for (const [kind, columns] of Object.entries(kinds))
    await write(`${kind}.parquet`, columns, all, 'ROW_GROUP_SIZE 2048');
  // The same rows in other files, row groups and order.
  mkdirSync(path('cut'));
  for (let part = 0; part < 7; part++)
    await write(
      `cut/${part}.parquet`,
      kinds.near,
      `SELECT range FROM range(40000) WHERE range % 7 = ${6 - part}`,
      'ROW_GROUP_SIZE 4096',
    );
});

const open = (workers: number, splitBytes: number) => cpuSession({ workers, splitBytes });

/** Everything that training receives from reading, and the number of tasks that read it. */
async function blocks(dataset: Dataset, options: RatingOptions = {}, ctx = dataset.session.context()) {
  const input = new RatingInput(options);
  return Holdings.within(ctx, async (held) => {
    const indexed = await input.index(dataset, undefined, held);
    const { byUser, byItem, duplicates } = await sortedBlocks(indexed, input.onDuplicates, held);
    const arrays = ({ offsets, indices, values }: typeof byUser) => [offsets, indices, values];
    const found = {
      users: keyArrays(indexed.users, 'key'),
      items: keyArrays(indexed.items, 'key'),
      byUser: arrays(byUser),
      byItem: arrays(byItem),
      duplicates,
    };
    return { found, tasks: ctx.metrics.get('read-ratings')?.runs ?? 0 };
  });
}

describe('ratings that threads read from splits', () => {
  it.each(Object.keys(kinds))(
    'give the blocks of one stream for any number of threads: %s ids',
    async (kind) => {
      const streaming = await open(3, 1e9);
      const stream = await blocks(streaming.read.parquet(path(`${kind}.parquet`)));
      expect(stream.tasks).toBe(0);
      for (const workers of kind === 'near' ? [1, 3] : [3]) {
        const session = await open(workers, 1);
        const { found, tasks } = await blocks(session.read.parquet(path(`${kind}.parquet`)));
        expect(tasks).toBe(20);
        expect(found).toEqual(stream.found);
      }
    },
  );

  it('give the same blocks for other files, row groups and splits', async () => {
    const one = await open(1, 1);
    const { found } = await blocks(one.read.parquet(path('near.parquet')));
    for (const splitBytes of [1, 3e4]) {
      const session = await open(3, splitBytes);
      expect((await blocks(session.read.parquet(path('cut')))).found).toEqual(found);
    }
  });

  it('number many ids, by several shares and ranges of them, as one thread does', async () => {
    await write(
      'many.parquet',
      ['((i * 7919 % 150001) * 13007)::INTEGER', "'item ' || (i * 104729 % 140009)"],
      'SELECT * FROM range(160000)',
      'ROW_GROUP_SIZE 20480',
    );
    const one = await open(1, 1);
    const three = await open(3, 1);
    const [alone, together] = [
      await blocks(one.read.parquet(path('many.parquet'))),
      await blocks(three.read.parquet(path('many.parquet'))),
    ];
    expect(together.found.byUser[0].length).toBe(150002);
    expect(together.found.byItem[0].length).toBe(140010);
    for (const key of ['users', 'items', 'byUser', 'byItem'] as const) {
      const [left, right] = [Object.values(alone.found[key]), Object.values(together.found[key])];
      for (const [i, values] of left.entries())
        expect(
          Buffer.compare(Buffer.from(values.slice().buffer), Buffer.from(right[i].slice().buffer)),
          key,
        ).toBe(0);
    }
    const users = (together.found.users as { keyValues: Int32Array }).keyValues;
    expect(users.every((user, i) => i === 0 || user > users[i - 1])).toBe(true);
  });

  it('have a test set whose known pairs are those of one stream', async () => {
    const pairs = async (splitBytes: number, kind: string, other: string) => {
      const session = await open(3, splitBytes);
      const input = new RatingInput({});
      return await Holdings.within(session.context(), async (ctx) => {
        const [train] = session.read.parquet(path(`${kind}.parquet`)).randomSplit([0.02, 0.98]);
        const { users, items } = await input.index(train, undefined, ctx);
        const read = await input.readPairs(session.read.parquet(path(`${other}.parquet`)), ctx);
        const { indexed, coldPairs } = await keepKnown(read, { users, items }, ctx);
        const sorted = await sortRatings(indexed, { duplicates: 'keep', sides: 'users' }, ctx);
        const byUser = oneBlock(sorted.byUser);
        return {
          coldPairs,
          rows: indexed.rows,
          extra: sorted.duplicates,
          userCounts: indexed.userCounts,
          itemCounts: indexed.itemCounts,
          block: [byUser.offsets, byUser.indices, byUser.values],
        };
      });
    };
    for (const [kind, other] of [
      ['near', 'near int64'],
      ['text', 'text'],
      ['near', 'far'],
    ] as const) {
      const found = await pairs(1, kind, other);
      expect(found).toEqual(await pairs(1e9, kind, other));
      expect(found.coldPairs).toBeGreaterThan(0);
      if (other !== 'far') expect(found.rows).toBeGreaterThan(0);
    }
  });

  it('begin at records of text, also where lines lie inside quotes, and count lines of the whole file', async () => {
    // Most line ends are inside quotes, in texts whose lines look like rows.
    const note = (row: number) =>
      row % 3 === 0
        ? 'short'
        : `"${Array.from({ length: 40 }, (_, line) => `${row},${line},5,x`).join('\n')}"`;
    const lines = Array.from(
      { length: 700 },
      (_, row) => `${row % 83},${row % 31},${row === 560 ? 'much' : row % 10},${note(row)}`,
    );
    writeFileSync(path('quoted.csv'), ['user,item,rating,note', ...lines, ''].join('\n'));
    const read = async (splitBytes: number) => {
      const session = await open(3, splitBytes);
      const warnings: ProgressEvent[] = [];
      const ctx = session.context({
        onEvent: (event) => void (event.type === 'warning' && warnings.push(event)),
      });
      const { found, tasks } = await blocks(
        session.read.csv(path('quoted.csv'), { types: { rating: 'float64' } }),
        { onBadRows: 'skip' },
        ctx,
      );
      return { found, warnings, tasks };
    };
    const [stream, splits] = [await read(1e9), await read(2000)];
    expect(splits.tasks).toBeGreaterThan(50);
    expect(splits).toEqual({ ...stream, tasks: splits.tasks });
    expect(splits.warnings).toMatchObject([
      { text: expect.stringContaining(`line ${lines.slice(0, 560).join('\n').split('\n').length + 2}`) },
    ]);
  });

  it('pass the operators of the library', async () => {
    const make = async (session: Session) => {
      const [train, test] = session.read.parquet(path('near.parquet')).randomSplit([0.8, 0.2], { seed: 3 });
      const [older] = await train.timeSplit({ before: 7 });
      return [test, older, session.read.parquet(path('near.parquet')).kFold(3)[1].train];
    };
    const streaming = await open(3, 1e9);
    const splitting = await open(3, 1);
    const [streams, splits] = [await make(streaming), await make(splitting)];
    for (const [i, stream] of streams.entries()) {
      const { found, tasks } = await blocks(splits[i], { onDuplicates: 'last' });
      expect(tasks).toBe(20);
      expect(found).toEqual((await blocks(stream, { onDuplicates: 'last' })).found);
    }
  });
});

describe('ratings of the same rows in files of unusual shapes and other formats', () => {
  const ROWS = 6000;
  const FILES = 120;
  const line = (i: number) => `${(i * 7919) % 1201},${(i * 104_729) % 307},${((i * 31) % 10) / 2}`;
  const csv = (from: number, to: number) =>
    `user,item,rating\n${Array.from({ length: to - from }, (_, i) => `${line(from + i)}\n`).join('')}`;

  beforeAll(async () => {
    const session = await cpuSession();
    writeFileSync(path('all.csv'), csv(0, ROWS));
    const all = () => session.read.csv(path('all.csv'));
    await all().write.parquet(path('one-group.parquet'), { rowGroupSize: ROWS });
    await all().write.parquet(path('groups.parquet'), { rowGroupSize: 500 });
    await all().write.arrow(path('all.arrow'));
    await all().write.ndjson(path('all.ndjson'));
    for (const format of ['csv', 'parquet']) mkdirSync(path(`many-${format}`));
    for (let file = 0; file < FILES; file++) {
      const [rows, name] = [ROWS / FILES, `part-${String(file).padStart(5, '0')}`];
      writeFileSync(path(`many-csv/${name}.csv`), csv(file * rows, (file + 1) * rows));
      await session.read
        .csv(path(`many-csv/${name}.csv`))
        .write.parquet(path(`many-parquet/${name}.parquet`));
    }
  });

  const inputs: Readonly<Record<string, (session: Session) => Dataset>> = {
    'one file of one row group': (session) => session.read.parquet(path('one-group.parquet')),
    'row groups': (session) => session.read.parquet(path('groups.parquet')),
    'many small Parquet files': (session) => session.read.parquet(path('many-parquet')),
    'many small CSV files': (session) => session.read.csv(path('many-csv')),
    CSV: (session) => session.read.csv(path('all.csv')),
    Arrow: (session) => session.read.arrow(path('all.arrow')),
    NDJSON: (session) => session.read.ndjson(path('all.ndjson')),
  };

  it('have the same blocks and the same model', async () => {
    const factors = async (dataset: Dataset) => {
      const { userArrays, itemArrays } = await new ALS({ rank: 6, maxIter: 2, seed: 5 }).fit(dataset);
      return [userArrays.values, itemArrays.values];
    };
    const [streaming, session] = [await open(1, 1e9), await open(3, 5000)];
    const expected = await blocks(inputs['row groups'](streaming));
    const model = await factors(inputs['row groups'](streaming));
    for (const [name, read] of Object.entries(inputs)) {
      const { found, tasks } = await blocks(read(session));
      expect(found, name).toEqual(expected.found);
      // Threads read it, many small files by one task.
      expect(tasks).toBeGreaterThan(0);
      expect(tasks).toBeLessThan(FILES / 2);
      expect(await factors(read(session)), name).toEqual(model);
    }
  });

  it.each(['csv', 'parquet'])(
    'end with the name of the file that is damaged, one of many: %s',
    async (format) => {
      const name = path(`many-${format}/part-00071.${format}`);
      const good = readFileSync(name);
      writeFileSync(
        name,
        format === 'csv' ? 'user,item,rating\n1,2,3\n4,5\n' : good.subarray(0, good.length - 9),
      );
      const read = inputs[`many small ${format === 'csv' ? 'CSV' : 'Parquet'} files`];
      await expect(blocks(read(await open(3, 5000)))).rejects.toThrow(`part-00071.${format}`);
    },
  );
});
