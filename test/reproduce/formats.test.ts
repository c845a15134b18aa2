/** Readers of published files: small files of each form, and the errors for wrong ones. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readCmn } from '../../scripts/reproduce/formats/cmn.ts';
import { readCountedLists } from '../../scripts/reproduce/formats/counted-lists.ts';
import { readNcf } from '../../scripts/reproduce/formats/ncf.ts';
import { readUserLists } from '../../scripts/reproduce/formats/user-lists.ts';
import type { Pairs } from '../../scripts/reproduce/pairs.ts';

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

describe("CMN's file", () => {
  /** As NumPy pickles an array of one object, {0: (2, [7, 300]), 1: (numpy.int64(5), [8, 9])}. */
  const pickle = Buffer.concat([
    text(
      '\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nK\x00\x85c_codecs\nencode\nq\x03',
    ),
    text('X\x01\x00\x00\x00bX\x06\x00\x00\x00latin1q\x05\x86R\x87R(K\x01)cnumpy\ndtype\nq\x0a'),
    text(
      'X\x02\x00\x00\x00O8K\x00K\x01\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]}(',
    ),
    text(
      'K\x00K\x02](K\x07M\x2c\x01e\x86K\x01cnumpy.core.multiarray\nscalar\nh\x0aX\x02\x00\x00\x00i8K\x00K\x01\x87R',
    ),
    text('h\x03X\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00h\x05\x86R\x86R](K\x08K\x09e\x86uatb.'),
  ]);
  const table = Buffer.from(Uint32Array.of(0, 0, 1, 3, 4, 3).buffer);

  it.each([
    ['stored', 0],
    ['deflated', 8],
  ])('is a %s table and a pickled dictionary', (_, method) => {
    const folder = folderOf({
      'citeulike-a.npz': zip(method, {
        'train_data.npy': npy('<u4', '(3, 2)', true, table),
        'test_data.npy': npy('|O', '()', false, pickle),
      }),
    });
    const { train, test, candidates } = readCmn(folder);
    expect(rows(train)).toEqual([
      [0, 3],
      [0, 4],
      [1, 3],
    ]);
    expect(rows(test)).toEqual([
      [0, 2],
      [1, 5],
    ]);
    expect(rows(candidates)).toEqual([
      [0, 7],
      [0, 300],
      [1, 8],
      [1, 9],
    ]);
  });

  it('may have rows in C order', () => {
    const folder = folderOf({
      'citeulike-a.npz': zip(0, {
        'train_data.npy': npy('<u4', '(3, 2)', false, Buffer.from(Uint32Array.of(0, 3, 0, 4, 1, 3).buffer)),
        'test_data.npy': npy('|O', '()', false, pickle),
      }),
    });
    expect(rows(readCmn(folder).train)).toEqual([
      [0, 3],
      [0, 4],
      [1, 3],
    ]);
  });

  it.each([
    ['a text', Buffer.from('not a zip file of arrays'), 'the file is no zip file'],
    [
      'no test',
      zip(0, { 'train_data.npy': npy('<u4', '(3, 2)', true, table) }),
      'there is no array test_data',
    ],
    ['floats', withTest(npy('<f4', '(3, 2)', true, table), pickle), 'train_data has type <f4'],
    [
      'code',
      withTest(npy('<u4', '(3, 2)', true, table), text('\x80\x02ios\nsystem\n.')),
      'has the opcode "i"',
    ],
    [
      'its half',
      withTest(npy('<u4', '(3, 2)', true, table), pickle.subarray(0, 150)),
      'pickle ends too early',
    ],
    [
      'a number',
      withTest(npy('<u4', '(3, 2)', true, table), text('\x80\x02K\x01.')),
      'no dictionary of users',
    ],
  ])('with %s is refused', (_, content, message) => {
    expect(() => readCmn(folderOf({ 'citeulike-a.npz': content }))).toThrow(message);
  });
});

function text(bytes: string): Buffer {
  return Buffer.from(bytes, 'latin1');
}

function withTest(train: Buffer, pickled: Buffer): Buffer {
  return zip(0, { 'train_data.npy': train, 'test_data.npy': npy('|O', '()', false, pickled) });
}

function npy(type: string, shape: string, fortran: boolean, data: Buffer): Buffer {
  const header = `{'descr': '${type}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': ${shape}, }\n`;
  const start = text('\x93NUMPY\x01\x00\x00\x00');
  start.writeUInt16LE(header.length, 8);
  return Buffer.concat([start, text(header), data]);
}

/** A zip file of these entries; readers use the sizes in its directory. */
function zip(method: number, entries: Readonly<Record<string, Buffer>>): Buffer {
  const [parts, records] = [[] as Buffer[], [] as Buffer[]];
  let place = 0;
  for (const [name, content] of Object.entries(entries)) {
    const packed = method === 0 ? content : deflateRawSync(content);
    const header = Buffer.alloc(30);
    header.writeUInt32LE(0x04_03_4b_50);
    header.writeUInt16LE(name.length, 26);
    const record = Buffer.alloc(46);
    record.writeUInt32LE(0x02_01_4b_50);
    record.writeUInt16LE(method, 10);
    record.writeUInt32LE(packed.length, 20);
    record.writeUInt16LE(name.length, 28);
    record.writeUInt32LE(place, 42);
    records.push(record, text(name));
    parts.push(header, text(name), packed);
    place += 30 + name.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50);
  end.writeUInt16LE(Object.keys(entries).length, 10);
  end.writeUInt32LE(place, 16);
  return Buffer.concat([...parts, ...records, end]);
}
