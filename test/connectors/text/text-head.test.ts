import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { TextSource } from '../../../connectors/text/text-source.ts';
import type { TextSourceOptions } from '../../../connectors/text/text-source.ts';
import { UsageError } from '../../../engine/errors.ts';
import type { ProgressEvent } from '../../../engine/events.ts';
import { collect, context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readInSplits, readWhole } from '../../support/read-splits.ts';
import { readText } from './text-testing.ts';

const folder = temporaryFolder();
const read = (content: string, options: TextSourceOptions = {}, name?: string) =>
  readText(folder, content, options, name);

/** The messages of reading, twice in one run. */
async function messages(content: string, options: TextSourceOptions = {}): Promise<string[]> {
  const file = join(folder, 'noted.txt');
  writeFileSync(file, content);
  const events: ProgressEvent[] = [];
  const run = { ...context(), metrics: {}, events: (event: ProgressEvent) => void events.push(event) };
  const source = new TextSource(file, options);
  for (let pass = 0; pass < 2; pass++) await collect(await source.execute(run as never));
  return events.map((event) => ('text' in event ? event.text.replaceAll(file, 'FILE') : event.type));
}

describe('comment lines', () => {
  const konect = '% bip weighted\n% 4 2 2\n1 1 5 881250949\n2 1 3 881250950\n';

  test('at the head of files of KONECT and SNAP are skipped', async () => {
    expect((await read(konect)).rows).toEqual([
      [1, 1, 5, 881250949],
      [2, 1, 3, 881250950],
    ]);
    expect(await read('# Directed graph\n\n# Nodes: 3\n# From\tTo\n0\t1\n1\t2\n')).toEqual({
      columns: ['# From:Int32', 'To:Int32'],
      rows: [
        [0, 1],
        [1, 2],
      ],
    });
    expect((await read('# note, of two fields\nuser,item,rating\n#1,2,3\n')).rows).toEqual([['#1', 2, 3]]);
    expect((await read('#id,b\n1,"c\nd"\n')).columns).toEqual(['#id:Int32', 'b:Utf8']);
    expect((await read('#1 hit\nsecond\n', { header: false })).rows).toEqual([['#1 hit'], ['second']]);
  });

  test('are counted once a run', async () => {
    expect(await messages(konect)).toEqual([
      '2 comment lines at the beginning of FILE are skipped; the option comment decides otherwise',
    ]);
  });

  test('are those that the user names, anywhere', async () => {
    const text = '// a\nuser,item\n1,2\n// b, c\n3,4\n//\n';
    expect((await read(text, { comment: '//' })).rows).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect((await read('#x\n1\n2\n', { comment: '', header: false })).rows).toEqual([['#x'], ['1'], ['2']]);
    for (const comment of ['"', '\n', 'é', 'x'.repeat(17)])
      expect(() => new TextSource('x', { comment })).toThrow(UsageError);
  });

  test('are skipped by every split, and lines count them', async () => {
    const file = join(folder, 'split.csv');
    const rows = Array.from({ length: 300 }, (_, i) => `${i},${i % 7}\n`);
    const commented = rows.map((row, i) => (i % 10 === 0 ? `#\n${row}` : row));
    for (const [content, options] of [
      [`# a comment\n# another\nuser,item\n${rows.join('')}`, {}],
      [`# a comment\nuser,item\n${commented.join('')}#`, { comment: '#' }],
    ] as const) {
      writeFileSync(file, content);
      const source = new TextSource(file, options);
      const whole = await readWhole(source);
      expect(whole).toMatchObject({ rows: { length: 300 } });
      expect(await readInSplits(source, 16)).toMatchObject(whole);
    }
    await expect(read('# a\n# b\n1,2\n3\n')).rejects.toThrow(/line 4: the row has 1 field, need 2/);
  });
});

describe('the delimiter', () => {
  test('is the one of a line sep=', async () => {
    const semicolons = { columns: ['user:Int32', 'item:Int32', 'name:Utf8'], rows: [[1, 2, 'a,b']] };
    expect(await read('sep=;\nuser;item;name\n1;2;a,b\n')).toEqual(semicolons);
    expect(await read('\ufeffsep=;\r\nuser;item;name\r\n1;2;a,b\r\n')).toEqual(semicolons);
  });

  test('is a space for a table of words with a column of numbers, not for a column of names', async () => {
    expect((await read('user item rating\nu1 i1 5\nu2 i2 4\n')).rows).toEqual([
      ['u1', 'i1', 5],
      ['u2', 'i2', 4],
    ]);
    expect((await read('user item\n1 2\n3 4\n')).columns).toEqual(['user:Int32', 'item:Int32']);
    expect((await read('a b\nc d\n', { header: false })).columns).toEqual(['column1:Utf8']);
    expect((await read('Item 1\nItem 2\n', { header: false })).columns).toEqual(['column1:Utf8']);
    expect(await messages('ann heat\nbob alien\n')).toEqual([
      'each line of FILE has 2 words, which are read as one column; the option delimiter decides otherwise',
    ]);
    expect((await read('name\nThe Matrix\nHeat 2\n')).columns).toEqual(['name:Utf8']);
  });
});

describe('quotes between tabs', () => {
  const stray = 'user\titem\trating\n1\t"Weird\t5\n2\tLow"\t3\n3\tx\t4\n4\t"Weird" Al\t1\n';

  test('are part of the texts where no field is properly quoted, and that is told', async () => {
    expect((await read(stray)).rows).toEqual([
      [1, '"Weird', 5],
      [2, 'Low"', 3],
      [3, 'x', 4],
      [4, '"Weird" Al', 1],
    ]);
    expect(await messages(stray)).toEqual([
      '2 fields of FILE begin with a quote and do not end with one, the first in line 2: quotes are read as part of the text; the option quotes decides otherwise',
    ]);
    expect(await messages(stray.replaceAll('"', ''))).toEqual([]);
  });

  test('count where one is', async () => {
    expect((await read('user\titem\n1\t"a\tb"\n2\t"c\nd"\n')).rows).toEqual([
      [1, 'a\tb'],
      [2, 'c\nd'],
    ]);
    expect((await read('user\titem\n1\t"a"\n2\t"b"" "\n')).rows).toEqual([
      [1, 'a'],
      [2, 'b" '],
    ]);
    expect((await read(stray.slice(0, stray.indexOf('4\t"')), { quotes: true })).rows).toEqual([
      [1, 'Weird\t5\n2\tLow', 3],
      [3, 'x', 4],
    ]);
  });

  test('in the wrong place make a bad row of their line alone', async () => {
    const file = join(folder, 'faults.csv');
    writeFileSync(file, 'user,item,rating\n1,"Weird" Al,5\n2,b,4\n3,"c,3\n4,d,2\n5,"e",1\n');
    const needs = { numbers: [], takesFaults: true } as const;
    const found = await readWhole(new TextSource(file), { needs });
    expect(found).toMatchObject({ rows: { length: 5 } });
    expect(JSON.stringify(found)).toMatch(/2,.*"b.*4,.*"d.*5,.*"e/);
    expect(() => new TextSource('x', { quotes: 'none' as never })).toThrow(/quotes must be true or false/);
  });

  test('do not swallow rows, also where others are quoted', async () => {
    const mixed = `user\titem\trating\n0\t"q"\t1\n${stray.slice(stray.indexOf('1\t'))}`;
    await expect(read(mixed)).rejects.toThrow(
      /line 3: a quote in column 2 spans lines, which are whole rows/,
    );
  });
});
