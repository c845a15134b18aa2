import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TextSource } from '../../../connectors/text/text-source.ts';
import type { TextSourceOptions } from '../../../connectors/text/text-source.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
let files = 0;

async function mixed(lines: readonly string[], options: TextSourceOptions = {}) {
  const file = join(folder, `mixed-${files++}.csv`);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  const found = await new TextSource(file, options).mixedColumns();
  return found.map(({ file: _file, ...rest }) => rest);
}

/** Lines of user, item and rating, with other items in some rows; row 0 is line 2. */
function lines(rows: number, items: Readonly<Record<number, string>>): string[] {
  return [
    'user,item,rating',
    ...Array.from(
      { length: rows },
      (_, row) => `${row % 7},${items[row] ?? String(5_000_000_000 + row)},4.5`,
    ),
  ];
}

describe('columns of whole numbers with a few texts', () => {
  it('are found with the line of the first text', async () => {
    expect(await mixed(lines(300, { 120: 'n/a?' }))).toEqual([
      { column: 'item', line: 122, text: 'n/a?', texts: 1, rows: 300 },
    ]);
  });

  it('are found in any block of rows', async () => {
    const content = lines(1000, { 620: 'x', 900: '"y z"' });
    expect(await mixed(content, { batchSize: 64 })).toEqual([
      { column: 'item', line: 622, text: 'x', texts: 2, rows: 1000 },
    ]);
  });

  it('are found where the first row is a header that is read as a row', async () => {
    const found = await mixed(lines(300, {}), { header: false });
    expect(found.map(({ column, line, text }) => [column, line, text])).toEqual([
      ['user', 1, 'user'],
      ['item', 1, 'item'],
    ]);
  });

  it.each([
    ['one of a hundred rows', lines(100, { 3: 'x' }), {}],
    ['only whole numbers and nulls', lines(300, { 3: '', 4: 'NA' }), {}],
    [
      'only texts',
      lines(300, Object.fromEntries(Array.from({ length: 300 }, (_, row) => [row, `i${row}`]))),
      {},
    ],
    ['a decimal too', lines(300, { 3: 'x', 4: '1.5' }), {}],
    ['a decimal in a block before', lines(300, { 3: '1.5', 200: 'x' }), { batchSize: 64 }],
    ['ids with leading zeros', lines(300, { 3: '0042' }), {}],
    ['a given type', lines(300, { 3: 'x' }), { types: { item: 'utf8' } }],
    [
      'texts among nulls',
      lines(300, Object.fromEntries(Array.from({ length: 300 }, (_, row) => [row, row === 9 ? 'x' : '']))),
      {},
    ],
  ] as const)('are not those with %s', async (_, content, options) => {
    expect(await mixed(content, options)).toEqual([]);
  });
});
