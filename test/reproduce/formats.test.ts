/** Readers of published files: small files of each form, and the errors for wrong ones. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countedList, negatives, type Pair, ratings, userList } from '../../scripts/reproduce/formats.ts';

/** The pairs of a file with this text. */
function read(reader: (file: string) => Iterable<Pair>, text: string): number[][] {
  const file = join(mkdtempSync(join(tmpdir(), 'factorflow-published-')), 'file');
  writeFileSync(file, text);
  return Array.from(reader(file), ({ user, item }) => [user, item]);
}

describe("LightGCN's and UltraGCN's lists", () => {
  it('are a user and items a line, with any spaces, and users without items', () => {
    expect(read(userList, '0 7 9\n1 \n\n5\t7\r\n')).toEqual([
      [0, 7],
      [0, 9],
      [5, 7],
    ]);
    expect(read(userList, '0 3 \n1 4')).toEqual([
      [0, 3],
      [1, 4],
    ]);
  });

  it.each(['x', '-1', '1.5', '2147483648', '99999999999'])('refuse %s as an item, with its line', (item) => {
    const reading = () => read(userList, `0 1\n2 3 ${item}\n`);
    expect(reading).toThrow(`"${item}" where the item should be`);
    expect(reading).toThrow(/line 2/);
  });
});

describe("CVAE's lists", () => {
  it('count users by lines', () => {
    expect(read(countedList, '2 5 6\n0\n1 5\n')).toEqual([
      [0, 5],
      [0, 6],
      [2, 5],
    ]);
  });

  it.each([
    ['3 5 6\n', 'the line says 3 items and has 2'],
    ['1 5\n\n1 6\n', 'an empty line, where users are counted by lines'],
  ])('of %j are refused', (text, message) => {
    expect(() => read(countedList, text)).toThrow(message);
  });
});

describe("NCF's files", () => {
  it('have ratings and candidates', () => {
    expect(read(ratings, '0\t32\t4\t978824330\n1\t34\t5\t978824330\n')).toEqual([
      [0, 32],
      [1, 34],
    ]);
    expect(read(negatives, '(0,25)\t1064\t174\n(1,133)\t9\t8\n')).toEqual([
      [0, 1064],
      [0, 174],
      [1, 9],
      [1, 8],
    ]);
  });

  it.each([
    ['0,25\t1064\n', '"0,25" where a pair such as (0,25) should be'],
    ['(0,25)\t1064\tx\n', '"x" where the item should be'],
  ])('with negatives of %j are refused', (text, message) => {
    expect(() => read(negatives, text)).toThrow(message);
  });

  it('without an item are refused', () => {
    expect(() => read(ratings, '0\n')).toThrow('no field where the item should be');
  });
});
