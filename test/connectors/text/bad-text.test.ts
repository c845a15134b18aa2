import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readText } from './text-testing.ts';

const folder = temporaryFolder();

const read = (content: string | Uint8Array, options = {}, name?: string) =>
  readText(folder, content, options, name);

describe('bad input', () => {
  const fails = async (content: string | Uint8Array, pattern: RegExp, options = {}, name?: string) => {
    const error = await read(content, options, name).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataError);
    expect(String(error)).toMatch(pattern);
  };

  test('rows of another length, with line and text', async () => {
    await fails('a,b\n1,2\n3\n', /line 3: the row has 1 field, need 2: "3" \(.*\.csv\)/);
    await fails(
      'a,b\n1,2\n\n"x\ny",4,"5,"\n',
      /line 4: the row has 3 fields, need 2, and a quote in column 1 spans lines: "\\"x"/,
    );
  });

  test('quotes that do not close, or close too early', async () => {
    await fails(
      'a,b\n1,2\n3,"four\n5,6\n',
      /line 3: a quote opens in column 2 and does not close: "3,\\"four"/,
    );
    await fails(
      'a,b\n1,"x"y\n',
      /line 2: a closing quote is followed by something other than a delimiter or a line end: "1,\\"x\\"y" .*set the option quotes/,
    );
    await fails(
      `a,b\n1,"${'x'.repeat(3 << 20)}`,
      /line 2: a quote opens in column 2 and does not close within 1048576 bytes/,
    );
  });

  test('a row of more than 1 MiB', async () => {
    await fails(`a,b\n1,2\n${'x'.repeat(6 << 20)}`, /line 3: the row is longer than 1048576 bytes: "xxx/);
    await fails(`a,b\n1,2\n3,${'x'.repeat(1 << 20)}\n4,5\n`, /line 3: the row is longer than 1048576 bytes/);
  });

  test('other encodings', async () => {
    await fails(
      Buffer.from('a,b\n1,x\n2,\xe9t\xe9\n', 'latin1'),
      /line 3: the text is not UTF-8: "2,.*iconv -t UTF-8/,
    );
    await fails(Buffer.from('\ufeffa,b\n1,2\n', 'utf16le'), /line 1: the text is UTF-16 .*iconv -f UTF-16 /);
    const little = Buffer.from('a,b\n1,2\n', 'utf16le');
    await fails(little, /line 1: the text is UTF-16LE .*iconv -f UTF-16LE/);
    await fails(Buffer.from(little).swap16(), /line 1: the text is UTF-16BE .*iconv -f UTF-16BE/);
    await fails(Buffer.from('a,b\n1,x\n2,\xe2\x82', 'latin1'), /line 3: the text is not UTF-8/);
  });

  test('data that are no text, which no message shows', async () => {
    const binary = Buffer.from(Array.from({ length: 2000 }, (_, i) => (i % 3) * 40));
    await fails(binary, /: read: line 1: the file is binary, not text \(.*Check the path/);
    await fails(
      Buffer.from('a,b\n\x89PNG\x1a', 'latin1'),
      /line 2: the file is binary, or text that is not UTF-8 \(/,
    );
  });

  test('lines that end with CR alone', async () => {
    await fails('a,b\r1,2\r3,4\r', /its lines end with carriage returns alone .*tr/);
    await fails('a\r1\r3', /its lines end with carriage returns alone/);
    expect((await read('"a\rb",c', { header: false })).rows).toEqual([['a\rb', 'c']]);
  });

  test('values that do not fit the type that the beginning showed', async () => {
    const long = 'x'.repeat(800);
    const rows = Array.from({ length: 7000 }, (_, i) => `${i},${i},${long}\n`).join('');
    await fails(
      `a,b,c\n${rows}x,1,y\n`,
      /line 7002: "x" is not a whole number \(.*column "a"\)\. Correct the line, or set the column's type in the option types/,
    );
    await fails(`a,b,c\n${rows}1,9999999999,y\n`, /line 7002: "9999999999" is beyond int32/);
    await fails(`a,b,c\n${rows}1,007,y\n`, /line 7002: "007" begins with a zero/);
  });

  test('values that do not fit a type that is given', async () => {
    const types = { a: 'int64', b: 'float64' };
    await fails(
      'a,b\n9223372036854775808,1\n',
      /line 2: "9223372036854775808" is beyond int64 \(.*column "a"\)\. Correct the line$/,
      { types },
    );
    await fails('a,b\n1,two\n', /line 2: "two" is not a number/, { types });
    await fails('a,b\n1.0,2\n', /line 2: "1\.0" is not a whole number/, { types });
    await fails(
      'a,b\n1,2\n',
      /a type is given for a column that is not there \(.*column "c"\)\. The columns are: a, b/,
      { types: { c: 'utf8' } },
    );
  });

  test('nothing at all, two columns of one name, too few names', async () => {
    await fails('', /the file is empty, not even a header/);
    await fails('\n\n', /the file is empty/);
    await fails('a,a\n1,2\n', /two columns have the same name \(.*column "a"\)/);
    await fails('1,2,3\n', /2 column names are given, and the file has 3 columns/, { columns: ['a', 'b'] });
  });

  test('gzip that is cut off or damaged', async () => {
    const packed = gzipSync('a,b\n'.repeat(10_000));
    await fails(packed.subarray(0, packed.length - 10), /the gzip data are cut off/, {}, 'cut.csv.gz');
    for (const [ending, name] of [
      ['gz', 'gzip'],
      ['zst', 'zstd'],
      ['lz4', 'lz4'],
    ]) {
      for (const length of [1, 3])
        await fails(
          packed.subarray(0, length),
          new RegExp(`the ${name} data are cut off`),
          {},
          `short.csv.${ending}`,
        );
    }
    const damaged = Buffer.from(packed);
    damaged[packed.length - 6] ^= 255;
    await fails(damaged, /the gzip data are damaged/, {}, 'damaged.csv.gz');
  });

  test('options that cannot be', () => {
    for (const delimiter of ['', '1', '"', '\n', '€', 'x'.repeat(20)])
      expect(() => new TextSource('x', { delimiter })).toThrow(UsageError);
    expect(() => new TextSource('x', { types: { a: 'day' as 'utf8' } })).toThrow(/unknown column type "day"/);
    expect(() => new TextSource(['-', 'x'])).toThrow(/stdin/);
  });
});
