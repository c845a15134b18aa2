/** Readers of published files: small files of each form, and the errors for wrong ones. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Pairs, readCountedLists, readNcf, readUserLists } from '../../scripts/reproduce/formats.ts';

function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-published-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

const rows = (pairs: Pairs | undefined) =>
  pairs && Array.from(pairs.users, (user, k) => [user, pairs.items[k]]);

describe("LightGCN's and UltraGCN's lists", () => {
  it('are a user and items a line, with any spaces, and users without items', () => {
    const folder = folderOf({ 'train.txt': '0 7 9\n1 \n\n5\t7\r\n', 'test.txt': '0 3 \n1 4' });
    const { train, test, candidates } = readUserLists(folder);
    expect(rows(train)).toEqual([
      [0, 7],
      [0, 9],
      [5, 7],
    ]);
    expect(rows(test)).toEqual([
      [0, 3],
      [1, 4],
    ]);
    expect(candidates).toBeUndefined();
  });

  it.each(['x', '-1', '1.5', '2147483648', '99999999999'])('refuse %s as an item, with its line', (item) => {
    const folder = folderOf({ 'train.txt': `0 1\n2 3 ${item}\n`, 'test.txt': '' });
    expect(() => readUserLists(folder)).toThrow(`"${item}" where the item should be`);
    expect(() => readUserLists(folder)).toThrow(/line 2/);
  });
});

describe("CVAE's lists", () => {
  it('count users by lines', () => {
    const folder = folderOf({
      'cf-train-10-users.dat': '2 5 6\n1 5\n',
      'cf-test-10-users.dat': '0\n2 7 8\n',
    });
    const { train, test } = readCountedLists(folder);
    expect(rows(train)).toEqual([
      [0, 5],
      [0, 6],
      [1, 5],
    ]);
    expect(rows(test)).toEqual([
      [1, 7],
      [1, 8],
    ]);
  });

  it.each([
    ['3 5 6\n', 'the line says 3 items and has 2'],
    ['1 5\n\n1 6\n', 'an empty line, where users are counted by lines'],
  ])('of %j are refused', (text, message) => {
    const folder = folderOf({ 'cf-train-10-users.dat': text, 'cf-test-10-users.dat': '' });
    expect(() => readCountedLists(folder)).toThrow(message);
  });
});

describe("NCF's files", () => {
  const train = '0\t32\t4\t978824330\n1\t34\t5\t978824330\n';
  const test = '0\t25\t5\t978824351\n1\t133\t3\t978300174\n';

  it('have ratings, test pairs and candidates', () => {
    const folder = folderOf({
      'ml-1m.train.rating': train,
      'ml-1m.test.rating': test,
      'ml-1m.test.negative': '(0,25)\t1064\t174\n(1,133)\t9\t8\n',
    });
    const split = readNcf(folder, 'ml-1m');
    expect(rows(split.train)).toEqual([
      [0, 32],
      [1, 34],
    ]);
    expect(rows(split.test)).toEqual([
      [0, 25],
      [1, 133],
    ]);
    expect(rows(split.candidates)).toEqual([
      [0, 1064],
      [0, 174],
      [1, 9],
      [1, 8],
    ]);
  });

  it.each([
    ['0,25\t1064\n', '"0,25" where a pair such as (0,25) should be'],
    ['(0,25)\t1064\tx\n', '"x" where the item should be'],
  ])('with negatives of %j are refused', (negatives, message) => {
    const folder = folderOf({ 'a.train.rating': train, 'a.test.rating': test, 'a.test.negative': negatives });
    expect(() => readNcf(folder, 'a')).toThrow(message);
  });

  it('without an item are refused', () => {
    const folder = folderOf({ 'a.train.rating': '0\n', 'a.test.rating': test, 'a.test.negative': '' });
    expect(() => readNcf(folder, 'a')).toThrow('no field where the item should be');
  });
});
