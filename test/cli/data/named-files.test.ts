import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { factorflow, fails, json, quick, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const put = (name: string, content: string | Uint8Array) => (writeFileSync(path(name), content), path(name));

const train = (input: string, ...flags: string[]) => [
  'train',
  input,
  ...quick,
  '--device',
  'cpu',
  '--quiet',
  '--force',
  '--model-dir',
  path('model'),
  ...flags,
];

describe('names on the command line', () => {
  beforeAll(async () => {
    const text = 'userId,item,rating\n1,"a,b",4\n1,c,2\n2,"a,b",1\n2,"say ""d""",5\n3,c,3\n';
    expect((await factorflow(...train(put('names.csv', text), '--user-col', 'userId'))).code).toBe(0);
  });

  test('ids with commas: in quotes, or by the flag again', async () => {
    const items = async (...flags: string[]) =>
      new Set(
        (
          (await json('similar', path('model'), ...flags, '--n', '1', '--quiet')).neighbours as {
            item: string;
          }[]
        ).map(({ item }) => item),
      );
    expect(await items('--item', '"a,b"')).toEqual(new Set(['a,b']));
    expect(await items('--item', 'c,"a,b", "say ""d"""')).toEqual(new Set(['c', 'a,b', 'say "d"']));
    expect(await items('--item', 'c', '--item', '"a,b"')).toEqual(new Set(['c', 'a,b']));
    expect((await json('recommend', path('model'), '--users', '1', '--users', '2,3', '--quiet')).users).toBe(
      3,
    );
  });

  test('a column that is nearly there', async () => {
    await fails(
      3,
      /there is no column "user"; there are: usrs .*\. Did you mean usrs\? Name the columns with --user-col/,
      ...train(put('near.csv', 'usrs,item,rating\n1,2,3\n')),
    );
    await fails(
      3,
      /there is no column "itme".*Did you mean item\? Name the columns with --user-col, --item-col and --rating-col$/m,
      'inspect',
      path('names.csv'),
      '--user-col',
      'userId',
      '--item-col',
      'itme',
    );
    await fails(
      3,
      /there is no column "userId".*Name the columns with --user-col and --item-col$/m,
      'predict',
      path('model'),
      put('renamed.csv', 'person,item\n1,2\n'),
      '--output',
      path('not-written.csv'),
    );
    await fails(
      3,
      /a type is given for a column that is not there \(.*\)\. Did you mean userId\?/,
      'convert',
      path('names.csv'),
      path('x.parquet'),
      '--types',
      'userid=int64',
    );
  });
});
