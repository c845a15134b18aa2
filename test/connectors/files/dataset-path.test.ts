import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { resolveDataset } from '../../../connectors/files/dataset-path.ts';
import { partitionColumns } from '../../../connectors/folders/folder-columns.ts';
import { DataError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
const options = { extensions: ['.parquet'] };

for (const file of [
  'data/part-00001.parquet',
  'data/part-00000.parquet',
  'data/_SUCCESS',
  'data/.part-00000.parquet.crc',
  'data/_temporary/part-00009.parquet',
  'data/readme.txt',
  'data/deep/er/part-2.PARQUET',
  'data/deep/part-00003',
  'hive/year=2020/month=01/x.parquet',
  'hive/year=__HIVE_DEFAULT_PARTITION__/month=12/x.parquet',
  'hive/year=9999999999/month=a%2Fb/x.parquet',
  'uneven/year=1/x.parquet',
  'uneven/y.parquet',
  'odd/[1].parquet',
  'empty/readme.txt',
]) {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), '');
}

async function find(...paths: string[]): Promise<string[]> {
  const { files } = await resolveDataset(
    paths.map((path) => join(root, path)),
    options,
  );
  return files.map(({ file }) => relative(root, file));
}

const all = [
  'data/deep/er/part-2.PARQUET',
  'data/deep/part-00003',
  'data/part-00000.parquet',
  'data/part-00001.parquet',
];

test('a folder gives its data files at any depth, sorted; hidden and underscored names are no data', async () => {
  expect(await find('data')).toEqual(all);
  expect(await find('data/')).toEqual(all);
});

test('a named file may have any name', async () => {
  expect(await find('data/readme.txt')).toEqual(['data/readme.txt']);
  expect(await find('odd/[1].parquet')).toEqual(['odd/[1].parquet']);
});

test('a glob matches files and folders; nothing is read twice', async () => {
  expect(await find('data/part-*.parquet')).toEqual(['data/part-00000.parquet', 'data/part-00001.parquet']);
  expect(await find('data/**')).toEqual(expect.arrayContaining(all));
  expect(await find('da*')).toEqual(all);
  expect(await find('data/part-00001.parquet', 'data', 'data/part-0000[01].parquet')).toEqual(all);
});

test('links to folders are followed', async () => {
  symlinkSync(join(root, 'data/deep'), join(root, 'odd/link'));
  expect(await find('odd')).toEqual(['odd/[1].parquet', 'odd/link/er/part-2.PARQUET', 'odd/link/part-00003']);
});

test('name=value folders are decoded and typed', async () => {
  const { files, partitionColumns } = await resolveDataset(join(root, 'hive'), options);
  expect(files.map(({ partitions }) => partitions)).toEqual([
    { year: '2020', month: '01' },
    { year: '9999999999', month: 'a/b' },
    { year: null, month: '12' },
  ]);
  expect(partitionColumns).toEqual([
    { name: 'year', type: 'int64' },
    { name: 'month', type: 'utf8' },
  ]);
  const some = await resolveDataset(join(root, 'hive/year=2*'), options);
  expect(some.partitionColumns).toEqual([
    { name: 'year', type: 'int32' },
    { name: 'month', type: 'int32' },
  ]);
  expect(
    (await resolveDataset(join(root, 'hive/year=2020'), options)).partitionColumns.map(({ name }) => name),
  ).toEqual(['month']);
});

test('paths that cannot be read are refused with the reason', async () => {
  await expect(find('nowhere')).rejects.toThrow(/no such file or folder \(.*nowhere\)/);
  await expect(find('nowhere')).rejects.toBeInstanceOf(DataError);
  await expect(find('data/part-0.parquet/x')).rejects.toThrow(/no such file or folder/);
  await expect(find('empty')).rejects.toThrow(/has no data files \(\*\.parquet\).*empty/);
  await expect(find('data/*.csv')).rejects.toThrow(/no file matches the pattern/);
  await expect(find('uneven')).rejects.toThrow(
    /this file is in folders year=…, and \S*uneven\/y\.parquet in no folder name=value \(.*uneven\/year=1\/x\.parquet\)\. Read files of one layout together/,
  );
  await expect(resolveDataset([], options)).rejects.toThrow(/no input path/);
});

test('a folder without permission is an error', async ({ skip }) => {
  if (process.getuid?.() === 0) return skip('root reads every folder anyway');
  mkdirSync(join(root, 'secret'));
  chmodSync(join(root, 'secret'), 0);
  await expect(find('secret')).rejects.toThrow(/not readable: permission denied/);
});

test('a link to a folder above it is named at once, and other links are followed', async () => {
  for (const file of ['loop/part-0.parquet', 'loop/below/part-1.parquet', 'other/part-2.parquet']) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), '');
  }
  symlinkSync(join(root, 'other'), join(root, 'loop/linked'));
  expect(await find('loop')).toEqual([
    'loop/below/part-1.parquet',
    'loop/linked/part-2.parquet',
    'loop/part-0.parquet',
  ]);
  symlinkSync(join(root, 'loop'), join(root, 'loop/below/self'));
  const told = new RegExp(
    `the link ${join(root, 'loop/below/self')} leads to itself or to a folder above it`,
  );
  for (const path of ['loop', 'loop/*', 'loop/**/*.parquet']) await expect(find(path)).rejects.toThrow(told);
  symlinkSync('around', join(root, 'other/around'));
  await expect(find('other')).rejects.toThrow(/the link .*other\/around leads to itself/);
});

test.each([
  [['7', '007'], 'utf8'],
  [['0', '-0'], 'utf8'],
  [['7', '008'], 'int32'],
  [['9007199254740993', '9007199254740992'], 'int64'],
])('folders of the values %j are of type %s: none becomes another', (values, type) => {
  expect(
    partitionColumns(values.map((user) => ({ file: `user=${user}/x.csv`, partitions: { user } }))),
  ).toEqual([{ name: 'user', type }]);
});
