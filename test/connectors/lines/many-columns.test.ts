/**
 * Lines with new fields each, and rows of very many: more columns than are found by themselves are an error.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MOST_COLUMNS } from '../../../connectors/lines/row-layout.ts';
import { NdjsonSource } from '../../../connectors/ndjson/ndjson-source.ts';
import { fails, folder, read } from '../ndjson/ndjson-testing.ts';
import { readTable, readText } from '../text/text-testing.ts';

const lines = (count: number) => Array.from({ length: count }, (_, i) => `{"user":1,"k${i}":1}\n`).join('');

it('a new field in each line is an error with the line, and chosen fields are read', async () => {
  const content = lines(6000);
  await fails(
    content,
    /line 4096: with this line there are more than 4096 different fields, .*"k4095.*Name the fields to read/,
  );
  const { rows } = await read(content, { columns: ['user', 'k7'] });
  expect([rows.length, rows[7], rows[8]]).toEqual([6000, [1, 1], [1, null]]);
});

it('as many fields as are allowed are columns, whichever lines have them', async () => {
  // One column alone is read: the schema has all.
  const file = join(folder, 'most.ndjson');
  writeFileSync(file, lines(MOST_COLUMNS - 1));
  const { fields } = await new NdjsonSource(file).schema();
  expect([fields.length, String(fields.at(-1))]).toEqual([MOST_COLUMNS, 'k4094: Int32']);
});

it('the fields of several files count together', async () => {
  const files = [0, 1].map((part) => {
    const file = join(folder, `part-${part}.ndjson`);
    writeFileSync(
      file,
      `${JSON.stringify(Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`${part}-${i}`, i])))}\n`,
    );
    return file;
  });
  await expect(readTable(new NdjsonSource(files))).rejects.toThrow(/the files have 6000 different fields/);
});

it('kinds of all lines make a type, of one name in a line the last counts', async () => {
  const { columns } = await read(
    '{"a":1,"b":1}\n{"b":2.5,"c":true}\n{"c":null,"d":"x","a":"x","a":9007199254740993}\n',
  );
  expect(columns).toEqual(['a:Int64', 'b:Float64', 'c:Bool', 'd:Utf8']);
});

it('a row of text with more fields is an error, unless all are named', async () => {
  const names = Array.from({ length: 5000 }, (_, i) => `c${i}`);
  const content = `${names.join(',')}\n${names.map((_, i) => i).join(',')}\n`;
  await expect(readText(folder, content)).rejects.toThrow(
    /line 1: the row has 5000 fields, and at most 4096 columns are found by themselves: .*Check the delimiter/,
  );
  expect((await readText(folder, content, { columns: names, header: true })).columns).toHaveLength(5000);
});
