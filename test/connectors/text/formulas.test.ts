import { Float64, Int32, Utf8 } from 'apache-arrow';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { TextSink } from '../../../connectors/text/text-sink.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable, table, writeText } from './text-testing.ts';

const folder = temporaryFolder();

describe('texts that a spreadsheet takes for formulas', () => {
  const texts = ['=1+1', '+1', '-1', '@a', '\ta', '\ra', "'=1", 'a=1', '', '=a,"b"', null];
  const cells = table([
    ['=title', new Utf8(), texts],
    ['n', new Int32(), texts.map((_, row) => -row)],
    ['-x', new Float64(), texts.map(() => -Infinity)],
  ]);
  const plain = ['=1+1', '+1', '-1', '@a', '\ta', '"\ra"', "'=1", 'a=1', '""', '"=a,""b"""', ''];
  const escaped = ["'=1+1", "'+1", "'-1", "'@a", "'\ta", `"'\ra"`, "'=1", 'a=1', '""', `"'=a,""b"""`, ''];
  const lines = (first: readonly string[]) =>
    first.map((text, row) => `${text},${-row},-Infinity\n`).join('');

  test('are written as they are, or with a quote before them', async () => {
    const file = join(folder, 'formulas.csv');
    await writeText(file, cells.schema, [cells]);
    expect(readFileSync(file, 'utf8')).toBe(`=title,n,-x\n${lines(plain)}`);
    await writeText(file, cells.schema, [cells], { escapeFormulas: false });
    expect(readFileSync(file, 'utf8')).toBe(`=title,n,-x\n${lines(plain)}`);
    await writeText(file, cells.schema, [cells], { escapeFormulas: true });
    expect(readFileSync(file, 'utf8')).toBe(`'=title,n,'-x\n${lines(escaped)}`);
    const read = await readTable(new TextSource(file, { header: true }));
    expect(read.rows.map(([text]) => text)).toEqual(
      texts.map((text) => text?.replace(/^[=+\-@\t\r]/, "'$&") ?? null),
    );
  });

  test('have it in TSV, and in "::" without quotes', async () => {
    const batch = table([['item', new Utf8(), ['\ta', '@b']]]);
    await writeText(join(folder, 'formulas.tsv'), batch.schema, [batch], { escapeFormulas: true });
    expect(readFileSync(join(folder, 'formulas.tsv'), 'utf8')).toBe(`item\n"'\ta"\n'@b\n`);
    await writeText(join(folder, 'formulas.dat'), batch.schema, [batch], { escapeFormulas: true });
    expect(readFileSync(join(folder, 'formulas.dat'), 'utf8')).toBe(`'\ta\n'@b\n`);
  });

  test('the option is shown when it is on, and takes true or false alone', () => {
    expect(new TextSink('x.csv').describe()).not.toHaveProperty('escapeFormulas');
    expect(new TextSink('x.csv', { escapeFormulas: true }).describe()).toMatchObject({
      escapeFormulas: true,
    });
    expect(() => new TextSink('x.csv', { escapeFormulas: 'no' as never })).toThrow(
      /escapeFormulas must be true or false, got "no"/,
    );
  });
});
