/**
 * Inputs of unusual shapes and of other formats give the same blocks and models as the same rows in one
 * usual file.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { RatingInput } from '../../../api/rating-input.ts';
import { keyArrays } from '../../../engine/keys/key-column.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { ALS, type Dataset, Session } from '../../../index.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { sharedSession } from '../../support/shared-sessions.ts';
import { temporaryFolder } from '../../connectors/parquet/parquet-testing.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const ROWS = 6000;
const FILES = 300;
const line = (i: number) => `${(i * 7919) % 1201},${(i * 104_729) % 307},${((i * 31) % 10) / 2}`;
const csv = (from: number, to: number) =>
  `user,item,rating\n${Array.from({ length: to - from }, (_, i) => `${line(from + i)}\n`).join('')}`;

beforeAll(async () => {
  await using session = await Session.create({ device: 'cpu', workers: 2 });
  writeFileSync(path('all.csv'), csv(0, ROWS));
  const all = () => session.read.csv(path('all.csv'));
  await all().write.parquet(path('one-group.parquet'), { rowGroupSize: ROWS });
  await all().write.parquet(path('groups.parquet'), { rowGroupSize: 500 });
  await all().write.arrow(path('all.arrow'));
  await all().write.ndjson(path('all.ndjson'));
  for (const format of ['csv', 'parquet']) mkdirSync(path(`many-${format}`));
  const name = (file: number) => `part-${String(file).padStart(5, '0')}`;
  for (let file = 0; file < FILES; file++) {
    const rows = ROWS / FILES;
    writeFileSync(path(`many-csv/${name(file)}.csv`), csv(file * rows, (file + 1) * rows));
    await session.read
      .csv(path(`many-csv/${name(file)}.csv`))
      .write.parquet(path(`many-parquet/${name(file)}.parquet`));
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

async function read(session: Session, dataset: Dataset) {
  const ctx = session.context();
  return Holdings.within(ctx, async (held) => {
    const indexed = await new RatingInput({}).index(dataset, undefined, held);
    const { byUser, byItem } = await sortedBlocks(indexed, 'keep', held);
    const arrays = ({ offsets, indices, values }: typeof byUser) => [offsets, indices, values];
    const found = {
      users: keyArrays(indexed.users, 'key'),
      items: keyArrays(indexed.items, 'key'),
      byUser: arrays(byUser),
      byItem: arrays(byItem),
    };
    return { found, tasks: ctx.metrics.get('read-ratings')?.runs ?? 0 };
  });
}

describe('ratings of the same rows', () => {
  it.each(Object.keys(inputs))(
    'have the same blocks and the same model for 1 and 3 workers: %s',
    async (name) => {
      const streaming = await sharedSession({ device: 'cpu', workers: 1, splitBytes: 1e9 });
      const expected = await read(streaming, inputs['row groups'](streaming));
      const factors = async (dataset: Dataset) => {
        const model = await new ALS({ rank: 6, maxIter: 2, seed: 5 }).fit(dataset);
        return [model.userFactors, model.itemFactors].map(
          (side) => side.data.children[1].children[0].values as Float32Array,
        );
      };
      const model = await factors(inputs['row groups'](streaming));
      for (const workers of [1, 3]) {
        const session = await sharedSession({ device: 'cpu', workers, splitBytes: 5_000 });
        const { found, tasks } = await read(session, inputs[name](session));
        expect(found).toEqual(expected.found);
        // Threads read it, many small files by one task.
        expect(tasks).toBeGreaterThan(0);
        expect(tasks).toBeLessThan(FILES / 4);
        expect(await factors(inputs[name](session))).toEqual(model);
      }
    },
  );

  it.each(['csv', 'parquet'])(
    'end with the name of the file that is damaged, one of many: %s',
    async (format) => {
      const name = path(`many-${format}/part-00231.${format}`);
      const good = readFileSync(name);
      writeFileSync(
        name,
        format === 'csv' ? 'user,item,rating\n1,2,3\n4,5\n' : good.subarray(0, good.length - 9),
      );
      const session = await sharedSession({ device: 'cpu', workers: 3, splitBytes: 5_000 });
      await expect(
        read(session, inputs[`many small ${format === 'csv' ? 'CSV' : 'Parquet'} files`](session)),
      ).rejects.toThrow(`part-00231.${format}`);
      writeFileSync(name, good);
    },
  );
});
