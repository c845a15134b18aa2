import {
  Data,
  Dictionary,
  Int32,
  Int64,
  Int8,
  makeData,
  Table,
  tableFromArrays,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ALS } from '../../../index.ts';
import { duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const session = await cpuSession({ workers: 1 });

/** As arrow makes them of plain arrays: each batch has a dictionary of its own. */
const own = (users: string[]) =>
  tableFromArrays({
    user: users,
    item: Int32Array.from(users.keys()),
    rating: Float32Array.from(users, (user) => user.length),
  }).batches[0];

it('batches may each have a dictionary of their own, from training to a file', async () => {
  const batches = [own(['anna', 'bo', 'anna']), own(['cy', 'anna', 'bo', 'dora'])];
  const model = await new ALS({ rank: 2, maxIter: 1 }).fit(session.from(batches));
  expect([...(model.userFactors.getChildAt(0) ?? [])]).toEqual(['anna', 'bo', 'cy', 'dora']);
  const file = join(folder, 'predictions.parquet');
  await model.predict(session.from(batches)).write.parquet(file);
  expect(await duckRows(`SELECT "user", item FROM '${file}'`)).toEqual([
    ['anna', 0],
    ['bo', 1],
    ['anna', 2],
    ['cy', 0],
    ['anna', 1],
    ['bo', 2],
    ['dora', 3],
  ]);
});

it.each([
  ['8 bits, all of them used', new Int8(), 128],
  ['64 bits', new Int64(), 20],
])('indices of %s', async (_, indices, distinct) => {
  const dictionary = vectorFromArray(
    Array.from({ length: distinct }, (__, i) => `u${i}`),
    new Utf8(),
  );
  const codes = Array.from({ length: 300 }, (__, i) => i % distinct);
  const values = indices instanceof Int8 ? Int8Array.from(codes) : BigInt64Array.from(codes, BigInt);
  const nullBitmap = new Uint8Array(40).fill(0xff);
  nullBitmap[0] = 0xfe;
  const type = new Dictionary(new Utf8(), indices as never);
  const user = new Vector([
    makeData({
      type,
      length: 300,
      nullCount: 1,
      nullBitmap,
      data: values as never,
      dictionary,
    } as never) as Data,
  ]);
  const batch = new Table({
    user,
    item: vectorFromArray(
      codes.map((code) => code % 7),
      new Int32(),
    ),
    rating: vectorFromArray(codes.map((code) => code % 5)),
  }).batches[0];
  const model = await new ALS({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(session.from([batch]));
  expect(model.userCount).toBe(distinct);
  expect(model.training?.ratings).toBe(299);
});

it('a null among the values of a dictionary is a null', async () => {
  const dictionary = vectorFromArray(['a', null, 'b'], new Utf8());
  const user = new Vector([
    makeData({
      type: new Dictionary(new Utf8(), new Int32()),
      length: 4,
      nullCount: 0,
      data: Int32Array.of(0, 1, 2, 0),
      dictionary,
    }) as Data,
  ]);
  const batch = new Table({
    user,
    item: vectorFromArray([1, 2, 3, 4], new Int32()),
    rating: vectorFromArray([1, 2, 3, 4]),
  }).batches[0];
  await expect(new ALS().fit(session.from([batch]))).rejects.toThrow(
    '1 bad row, the first in the stream, row 2: user is null',
  );
  const model = await new ALS({ rank: 2, maxIter: 1, onBadRows: 'skip' }).fit(session.from([batch]));
  expect([...(model.userFactors.getChildAt(0) ?? [])]).toEqual(['a', 'b']);
  expect(await model.evaluate(session.from([batch]), { onBadRows: 'skip' })).toMatchObject({
    pairs: 3,
    coldPairs: 0,
  });
});
