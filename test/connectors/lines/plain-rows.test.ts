import { Field, Schema, type Data } from 'apache-arrow';
import fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TextType } from '../../../connectors/files/format-names.ts';
import { FieldBlock } from '../../../connectors/lines/field-block.ts';
import { PlainRows } from '../../../connectors/lines/plain-rows.ts';
import { arrowType, readColumn } from '../../../connectors/lines/read-column.ts';
import type { RowLayout } from '../../../connectors/lines/row-layout.ts';
import { scanRecords } from '../../../connectors/text/record-scanner.ts';
import { readersOf } from '../../../connectors/text/text-layout.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { sampleSize } from '../../support/deep.ts';
import { readWhole } from '../../support/read-splits.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const integers = [
  '0',
  '7',
  '-0',
  '-12',
  '999999999',
  '1000000000',
  '2147483647',
  '2147483648',
  '-2147483648',
  '-2147483649',
  '123456789012345',
  '9007199254740993',
  '007',
  '+1',
  ' 1',
  '',
];
const decimals = [
  '4',
  '4.',
  '.5',
  '-0',
  '-0.0',
  '3.14',
  '0.1',
  '123456789.012345',
  '1234567890.123456',
  '1e3',
  'NaN',
  '.',
  '-',
  '',
  '1.2.3',
  '0,5',
];
const times = [
  '2023-11-05',
  '2024-02-29',
  '0001-01-01',
  '9999-12-31',
  '1969-12-31T23:59',
  '2023-11-05T08:40:00Z',
  '2023-11-05 08:40:07.123',
  '2023-11-05T08:40:00.123456-02:30',
  '2023-11-05T08:40+0245',
  '1600-03-01T08:40:00+14',
  '2023-11-05T08:40:00.1234567',
  '2023-11-05T08:40:00.',
  '2023-11-05T08:40:00+02:',
  '2023-11-05T08:40:00+2',
  '2023-11-05T08:40:60',
  '2023-11-05T24:00',
  '2023-11-05T08:60',
  '2023-11-05t08:40',
  '2023-11-05T08',
  '2023-02-29',
  '1900-02-29',
  '2023-04-31',
  '2023-13-01',
  '2023-00-10',
  '2023-01-00',
  '2023/01/01',
  ' 2023-01-01',
  'NA',
  '',
];
const texts = ['a', 'ü漢', 'a"b', '"quoted"', '""', '', ' x ', 'long'.repeat(20)];

function layoutOf(types: readonly TextType[], given: readonly boolean[], decimalComma: boolean): RowLayout {
  const dialect = { delimiter: ';', quotes: true };
  const names = types.map((_, i) => `c${i}`);
  const schema = new Schema(names.map((name, i) => new Field(name, arrowType(types[i]), true)));
  return {
    header: false,
    names,
    kinds: [],
    types,
    given,
    rules: { decimalComma, nulls: undefined },
    schema,
    ...readersOf(dialect),
  };
}

/** Values by their bits, so that -0 is not 0. */
function bits(data: Data): unknown {
  const { values, valueOffsets, length, nullCount } = data as Data & { values: Uint8Array };
  const end =
    valueOffsets === undefined
      ? length * (data as unknown as { stride: number }).stride
      : (valueOffsets as Int32Array)[length];
  const used = values.subarray(0, end);
  const nulls = Array.from({ length }, (_, row) => !data.getValid(row));
  return [
    nullCount,
    nulls,
    valueOffsets && [...(valueOffsets as Int32Array)].slice(0, length + 1),
    [...new Uint8Array(used.buffer, used.byteOffset, used.byteLength)],
  ];
}

test('plain rows have the values of the scanner of all rows, up to the first that is not plain', () => {
  const type = fc.constantFrom<TextType>('int32', 'int64', 'float32', 'float64', 'utf8', 'date', 'timestamp');
  const cell = (of: TextType) => {
    const isTime = of === 'date' || of === 'timestamp';
    const all = of === 'utf8' ? texts : isTime ? times : of.startsWith('int') ? integers : decimals;
    const usual = of === 'timestamp' ? all.slice(4, 10) : all.slice(0, 4);
    return fc.oneof(
      { arbitrary: fc.constantFrom(...usual, ''), weight: 6 },
      { arbitrary: fc.constantFrom(...all), weight: 1 },
    );
  };
  const file = fc.array(type, { minLength: 2, maxLength: 4 }).chain((types) =>
    fc.record({
      types: fc.constant(types),
      given: fc.array(fc.boolean(), { minLength: types.length, maxLength: types.length }),
      wanted: fc.subarray([...types.keys()], { minLength: 1 }),
      decimalComma: fc.boolean(),
      rows: fc.array(fc.tuple(fc.tuple(...types.map(cell)), fc.constantFrom('\n', '\r\n'))),
      to: fc.integer({ min: 0, max: 400 }),
      limit: fc.integer({ min: 0, max: 400 }),
    }),
  );
  let read = 0;
  const property = fc.property(file, ({ types, given, wanted, decimalComma, rows, to, limit }) => {
    const content = Buffer.from(rows.map(([fields, end]) => fields.join(';') + end).join(''));
    const bytes = new Uint8Array(content.length + 1);
    bytes.set(content);
    const bounds = { to: Math.min(to, content.length), limit, atEnd: false };
    const layout = layoutOf(types, given, decimalComma);
    using plain = PlainRows.of(layout, wanted, 8) as PlainRows;
    const end = plain.scan(bytes, 0, bounds);
    const columns = plain.columns(false);
    read += plain.rows;

    const block = new FieldBlock(types.length, Math.max(1, plain.rows));
    if (plain.rows > 0)
      expect(scanRecords(block, bytes, 0, bounds, { delimiter: ';', quotes: true })).toBe(end);
    expect(block.rows).toBe(plain.rows);
    const onFault = (problem: Error) => {
      throw problem;
    };
    const expected = wanted.map((column) =>
      readColumn({ ...layout.rules, block, column, zeros: given[column], onFault }, types[column]),
    );
    if (plain.rows > 0) expect(columns.map(bits)).toEqual(expected.map(bits));
  });
  fc.assert(property, { numRuns: sampleSize(3000), seed: 4 });
  expect(read).toBeGreaterThan(1000);
});

test('a file with rows of all kinds reads as without the fast way', async () => {
  const odd = [
    '"7",1,4.5,"x"',
    ' 7,1,4.5,x',
    '7,,4.5,x',
    '7,1,NA,x',
    '',
    '7,12345678901234567,4.5,x',
    '7,1,4.5,"a\nb"',
  ];
  const lines = Array.from({ length: 12_000 }, (_, i) =>
    i % 1000 === 999
      ? odd[Math.floor(i / 1000) % odd.length]
      : `${i % 700},${i * 7919},${(i % 10) / 2},t${i % 13}`,
  );
  const file = join(folder, 'odd.csv');
  writeFileSync(file, `user,item,rating,title\n${lines.join('\n')}\n`);
  const usual = ['NA', 'N/A', '#N/A', 'NULL', 'Null', 'null', 'None', '\\N'];
  const types = { item: 'int64', title: 'utf8' } as const;
  // Given texts for nulls turn the fast way off.
  const [fast, all] = [new TextSource(file, { types }), new TextSource(file, { types, nullValues: usual })];
  const read = await readWhole(fast);
  expect('rows' in read && read.rows.length).toBe(12_000 - lines.filter((line) => line === '').length);
  expect(read).toEqual(await readWhole(all));
});

test('rows that a consumer borrows lie in the same memory', () => {
  const layout = layoutOf(['int32', 'float64'], [false, false], false);
  const bytes = Buffer.from('1;2.5\n3;4.5\n5;6.5\n \n');
  using plain = PlainRows.of(layout, [0, 1], 1) as PlainRows;
  const bounds = { to: bytes.length - 1, limit: bytes.length, atEnd: true };
  const next = plain.scan(bytes, 0, bounds);
  const [borrowed] = plain.columns(true);
  expect([...(borrowed.values as Int32Array)]).toEqual([1]);
  const third = plain.scan(bytes, next, bounds);
  expect([...(borrowed.values as Int32Array)]).toEqual([3]);
  const [own] = plain.columns(false);
  plain.scan(bytes, third, bounds);
  expect([...(own.values as Int32Array)]).toEqual([3]);
});

test('files of several megabytes that are read at the same time have their own rows, also where a megabyte ends inside one', async () => {
  const fields = (file: number, i: number) =>
    [i + file, (i * 7919) % 1_000_003, `${'x'.repeat((i % 7) + 200)}${file}`] as const;
  const read = async (file: number) => {
    const path = join(folder, `large-${file}.csv`);
    writeFileSync(
      path,
      `user,item,title\n${Array.from({ length: 9000 }, (_, i) => fields(file, i).join(',')).join('\n')}\n`,
    );
    const found = await readWhole(new TextSource(path));
    const rows = 'rows' in found ? found.rows.map(([values]) => values) : [found.error];
    expect(rows).toEqual(Array.from({ length: 9000 }, (_, i) => JSON.stringify(fields(file, i))));
  };
  await Promise.all([read(1), read(2)]);
});
