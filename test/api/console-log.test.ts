/** console.log of a session, a data set and a model. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, Session } from '../../index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const file = join(folder, 'ratings.csv');
const lines = Array.from({ length: 60 }, (_, k) => `${k % 12},film-${(5 * k) % 8},${1 + (k % 5)}`);
writeFileSync(file, `user,item,rating\n${lines.join('\n')}\n`);

let session: Session;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2, memoryBudget: '2GiB' });
});
afterAll(() => session?.close());

describe('console.log', () => {
  it('of a session prints state, devices, workers and memory', async () => {
    expect(inspect(session)).toMatch(
      /^Session\n {2}state {4}open\n {2}devices {2}2 threads, WebAssembly [\w-]+\n {2}workers {2}2\n {2}memory {3}2\.0 GiB\n {2}ids {6}numbers where [^\n]+$/,
    );
    const other = await Session.create({ device: 'cpu', workers: 1, ids: 'string' });
    await other.close();
    expect(inspect(other)).toMatch(
      /state {4}closed\n[^]* GiB, the memory of the machine\n {2}ids {6}string$/,
    );
    expect(inspect(Session.withoutDevices())).toMatch(/devices {2}no device\n {2}workers {2}none\n/);
  });

  it('of a data set prints its source, and its columns once they are known', async () => {
    const ratings = session.read.csv(file);
    expect(inspect(ratings)).toBe(
      `Dataset\n  source     ${file}\n  format     separated text\n  size       ${`user,item,rating\n${lines.join('\n')}\n`.length} B\n  columns    not read yet; await dataset.schema() opens the files\n  operators  none`,
    );
    const [train] = ratings.randomSplit([0.8, 0.2]);
    await ratings.schema();
    expect(inspect(train)).toMatch(
      /\n {2}columns {4}user Int32, item Utf8, rating Int32\n {2}operators {2}random-split$/,
    );
    expect(inspect(train.withColumnNames({ user: 'item', timestamp: 'when' }))).toMatch(
      /\n {2}names {6}user item, timestamp when\n {2}operators {2}random-split$/,
    );
  });

  it('of rows and batches of the caller says so', async () => {
    const rows = session.fromRows([{ user: 1, item: 'a', rating: 5 }]);
    await rows.schema();
    expect(inspect(rows)).toMatch(
      /^Dataset\n {2}source {5}row-source\n {2}format {5}plain objects of the caller\n {2}columns {4}user \w+, item Utf8, rating \w+\n {2}operators {2}none$/,
    );
    expect(inspect(session.from((async function* () {})()))).toMatch(/\n {2}read {7}only once$/);
    expect(
      inspect(session.read.parquet([1, 2, 3, 4, 5, 6].map((number) => join(folder, `${number}.parquet`)))),
    ).toMatch(/4\.parquet and 2 more\n {2}format {5}Parquet\n {2}columns/);
    expect(inspect(session.read.parquet('https://user:SECRET@host/a.parquet?token=SECRET'))).toMatch(
      /source {5}https:\/\/host\/a\.parquet\n/,
    );
  });

  it('of a model prints its algorithm, sizes, measures, origin and columns', async () => {
    const [train, test] = session.read.csv(file).randomSplit([0.8, 0.2]);
    const model = await new ALS({ rank: 2, maxIter: 2 }).fit(train, { validation: test });
    const text = inspect(model);
    expect(text).toMatch(
      /^Model: ALS, rank 2 with biases\n {2}users {4}1[12], ids int32\n {2}items {4}8, ids utf8\n {2}ratings {2}\d+\n {2}metrics {2}train RMSE \d\.\d{4}, test RMSE \d\.\d{4}, test MAE \d\.\d{4}\n {2}from {5}training in this process\n {2}columns {2}user, item and rating; predictions in prediction$/,
    );
    const directory = join(folder, 'model');
    await model.save(directory);
    expect(inspect(await session.loadModel(directory))).toBe(
      text.replace('training in this process', directory),
    );
  });
});
