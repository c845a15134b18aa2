import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NdjsonSource } from '../../../connectors/ndjson/ndjson-source.ts';
import { UsageError } from '../../../index.ts';
import { placeOf } from '../../../engine/stream/stream.ts';
import { context } from '../parquet/parquet-testing.ts';
import { fails, folder } from './ndjson-testing.ts';

describe('bad input', () => {
  test('a broken last line, and other lines that are no objects', async () => {
    await fails(
      '{"user":1,"item":2}\n{"user":2,"it',
      /line 2: the line is not a complete JSON object: "\{\\"user\\":2,\\"it" \(.*\.ndjson\)\. Correct the line/,
    );
    for (const key of ['\\x', 'a\\u12', '\\ud800']) await fails(`{"user":1}\n{"${key}":2}\n`, /line 2: /);
    for (const key of ['\\x', '\\ud800']) await fails(`{"${key}":2}\n`, /line 1: /);
    // Both halves would become U+FFFD, and two ids one.
    for (const half of ['\\ud800', '\\uDFFF', 'a\\ud83d', '\\ude00\\ud83d'])
      await fails(`{"user":"a\\u0062"}\n{"user":"${half}"}\n`, /line 2: a text has half of a surrogate pair/);
    await fails('{"user":1}\n\n{"user":2\n', /line 3: the line is not a complete JSON object/);
    await fails('{"user":1}\n{"user":2} {"user":3}\n', /line 2: something follows the JSON object/);
    await fails('{"user":1}\n5\n', /line 2: the line is not a JSON object/);
    await fails(
      '[{"user":1},\n{"user":2}]\n',
      /line 1: found a list instead of an object: NDJSON has one object on each line/,
    );
    await fails('user,item\n1,2\n', /line 1: the line is not a JSON object: "user,item"/);
    await fails('', /not one JSON object/);
    await fails('{}\n', /not one JSON object/);
  });

  test('what JSON does not allow', async () => {
    for (const value of [
      '01',
      '1.',
      '.5',
      '+1',
      '1e',
      'nul',
      'True',
      "'a'",
      '"a\\q"',
      '1 2',
      '"a',
      '[1,2',
      '{"a":1',
      '--1',
      '',
    ])
      await fails(`{"ok":1,"a":1}\n{"ok":1,"a":${value}}\n`, /line 2: /);
    for (const line of ['{"a":1,}', '{a:1}', '{"a" 1}', '{"a":1 "b":2}', '{,"a":1}', '{"a":1', '{'])
      await fails(`{"a":1,"b":1}\n${line}\n`, /line 2: the line is not a complete JSON object/);
  });

  test('nested values are named with line and field', async () => {
    await fails(
      '{"user":1,"tags":"x"}\n{"user":2,"tags":["a"]}\n',
      /line 2: "\[\\"a\\"\]" is an object or a list, which no column holds \(.*column "tags"\)\. Name the other fields in the option columns/,
    );
    await fails('{"user":{"id":1}}\n', /line 1: .*column "user"/);
    await fails('{"user":1}\n{"user":[2]}\n', /line 2: .*column "user"/, { types: { user: 'int32' } });
  });

  test('values that do not fit', async () => {
    await fails('{"a":1}\n{"a":"one"}\n', /line 2: "one" is not a whole number \(.*column "a"\)/, {
      types: { a: 'int32' },
    });
    await fails('{"a":true}\n{"a":"maybe"}\n', /line 2: "maybe" is neither true nor false/, {
      types: { a: 'bool' },
    });
    await fails(`{"a":"${'x'.repeat(1 << 20)}"}\n`, /line 1: the line is longer than 1048576 bytes/);
    await fails(Buffer.from('{"a":"x"}\n{"a":"\xe9"}\n', 'latin1'), /line 2: the text is not UTF-8/);
    expect(() => new NdjsonSource('x', { columns: ['a', 'a'] })).toThrow(UsageError);
    expect(() => new NdjsonSource('x', { types: { a: 'day' as 'utf8' } })).toThrow(
      /unknown column type "day"/,
    );
  });

  test('a consumer that takes faults gets nulls with their lines and reasons', async () => {
    const file = join(folder, 'faults.ndjson');
    writeFileSync(
      file,
      '{"user":1,"rating":4}\n\n{"user":"x","rating":"good"}\n{"user":3,"ra\n{"user":4,"rating":[5]}\n{"user":5}\n',
    );
    const source = new NdjsonSource(file, { types: { user: 'int32' } });
    const places: unknown[] = [];
    for await (const batch of await source.execute(context(), ['user', 'rating'], {
      numbers: ['rating'],
      takesFaults: true,
    })) {
      for (let row = 0; row < batch.numRows; row++)
        places.push([
          batch.getChildAt(0)?.get(row),
          batch.getChildAt(1)?.get(row),
          placeOf(batch, row)?.line,
          placeOf(batch, row)?.fault,
        ]);
    }
    expect(places).toEqual([
      [1, 4, 1, undefined],
      [null, null, 3, 'user "x" is not a whole number'],
      [null, null, 4, 'the line is not a complete JSON object: "{\\"user\\":3,\\"ra"'],
      [4, null, 5, 'rating "[5]" is an object or a list, which no column holds'],
      [5, null, 6, undefined],
    ]);
  });
});
