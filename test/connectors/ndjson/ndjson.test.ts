import { Bool, Float32, Float64, Int64, RecordBatch, Utf8 } from 'apache-arrow';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { NdjsonSource } from '../../../connectors/ndjson/ndjson-source.ts';
import { Session } from '../../../index.ts';
import { context, duckdb } from '../parquet/parquet-testing.ts';
import { readWhole } from '../../support/read-splits.ts';
import { readTable, table } from '../text/text-testing.ts';
import { fails, folder, read, write } from './ndjson-testing.ts';

describe('what is found out', () => {
  const ratings = {
    columns: ['user:Int32', 'item:Utf8', 'rating:Float64'],
    rows: [
      [1, 'a', 3.5],
      [2, 'b', 4],
    ],
  };

  test.each([
    ['plain', '{"user":1,"item":"a","rating":3.5}\n{"user":2,"item":"b","rating":4}\n'],
    [
      'spaces, CRLF and no last line end',
      ' { "user" : 1 , "item" : "a" , "rating" : 3.5 } \r\n{"user":2,\t"item":"b","rating":4.0}',
    ],
    [
      'blank lines and a byte order mark',
      '\ufeff\n{"user":1,"item":"a","rating":3.5}\n\n  \n{"user":2,"item":"b","rating":4}\n\n',
    ],
    ['fields in other orders', '{"user":1,"item":"a","rating":3.5}\n{"rating":4,"item":"b","user":2}\n'],
    [
      'escapes',
      '{"user":1,"item":"\\u0061","r\\u0061ting":3.5}\n{"user":2,"item":"\\u0062","rating":40e-1}\n',
    ],
    [
      'a field that comes twice: the last counts, as elsewhere',
      '{"user":7,"item":"a","rating":3.5,"user":1}\n{"user":2,"item":"b","rating":4}\n',
    ],
  ])('%s', async (_name, text) => {
    expect(await read(text)).toEqual(ratings);
    expect(await read(gzipSync(text))).toEqual(ratings);
  });

  test('types from narrow to wide; nulls and missing fields', async () => {
    const lines = [
      '{"int":1,"long":9007199254740993,"float":1,"text":"1","flag":true,"mixed":1,"none":null}',
      '{"int":null,"long":1,"float":0.5,"text":"","flag":false,"mixed":"x","late":"é\\n\\"😀\\ud83d\\ude00"}',
      '{}',
      '{"int":-0,"long":-9223372036854775808,"float":NaN,"text":null,"flag":null,"mixed":true}',
    ];
    expect(await read(lines.join('\n'))).toEqual({
      columns: [
        'int:Int32',
        'long:Int64',
        'float:Float64',
        'text:Utf8',
        'flag:Bool',
        'mixed:Utf8',
        'none:Utf8',
        'late:Utf8',
      ],
      rows: [
        [1, 9007199254740993n, 1, '1', true, '1', null, null],
        [null, 1n, 0.5, '', false, 'x', null, 'é\n"😀😀'],
        [null, null, null, null, null, null, null, null],
        [0, -9223372036854775808n, Number.NaN, null, null, 'true', null, null],
      ],
    });
  });

  test('types, fields and texts for null that are given', async () => {
    const text = '{"user":"7","item":1,"rating":"4","more":[1]}\n{"user":"8","item":2,"rating":"-"}\n';
    const options = {
      types: { user: 'int64', item: 'utf8', rating: 'float32' },
      columns: ['rating', 'user', 'item'],
      nullValues: ['-'],
    } as const;
    expect(await read(text, options)).toEqual({
      columns: ['rating:Float32', 'user:Int64', 'item:Utf8'],
      rows: [
        [4, 7n, '1'],
        [null, 8n, '2'],
      ],
    });
  });

  test('fields that are not asked for may be nested, and may come late', async () => {
    const late = `${'{"user":1,"item":2,"tags":["a","}\\""],"more":{"x":[{}]}}\n'.repeat(100_000)}{"user":3,"new":4,"item":5}\n`;
    const { rows } = await read(late, {}, ['user', 'item']);
    // A consumer that handles bad rows has chosen its columns, even if they are all of the first 4 MiB.
    const file = join(folder, 'chosen.ndjson');
    writeFileSync(
      file,
      `${`{"user":1,"item":"${'x'.repeat(4000)}"}\n`.repeat(1100)}{"user":3,"new":4,"item":"y"}\n`,
    );
    const needs = { numbers: [], takesFaults: true } as const;
    const chosen = await readWhole(new NdjsonSource(file), { columns: ['user', 'item'], needs });
    expect('rows' in chosen && chosen.rows.at(-1)?.[0]).toBe('[3,"y"]');
    expect([rows.length, rows[0], rows.at(-1)]).toEqual([100_001, [1, 2], [3, 5]]);
    const plain = `${'{"user":1,"item":"some text to fill the first part of the file"}\n'.repeat(80_000)}{"user":3,"new":4}\n`;
    await fails(
      plain,
      /line 80001: the field "new" is not among the fields of the first 4 MiB: .*Name the fields to read in the option columns/,
    );
  });

  test('files of a folder may lack fields of each other', async () => {
    const path = join(folder, 'parts');
    mkdirSync(path);
    writeFileSync(join(path, 'a.jsonl'), '{"user":1,"item":2}\n');
    writeFileSync(join(path, 'b.ndjson'), '{"user":5000000000,"rating":2.5}\n');
    expect(await readTable(new NdjsonSource(path))).toEqual({
      columns: ['user:Int64', 'item:Int32', 'rating:Float64'],
      rows: [
        [1n, 2, null],
        [5000000000n, null, 2.5],
      ],
    });
  });
});

test('sessions read and write it, by name and by ending', async () => {
  await using session = Session.withoutDevices();
  writeFileSync(
    join(folder, 'session.ndjson'),
    '{"user":1,"item":"a","rating":"NA","more":[1]}\n{"user":2,"item":"b","rating":"4.5"}\n',
  );
  const ratings = session.read.ndjson(join(folder, 'session.ndjson'), {
    columns: ['user', 'item', 'rating'],
    types: { rating: 'float64' },
  });
  await ratings.write.ndjson(join(folder, 'again.jsonl.gz'));
  await ratings.write.arrow(join(folder, 'again.feather'), { codec: 'lz4' });
  for (const name of ['again.jsonl.gz', 'again.feather']) {
    const rows: unknown[] = [];
    for await (const batch of await session.read.any(join(folder, name)))
      for (const row of batch) rows.push(row?.toJSON());
    expect(rows).toEqual([
      { user: 1, item: 'a', rating: null },
      { user: 2, item: 'b', rating: 4.5 },
    ]);
  }
  expect(() => session.read.ndjson('x', { delimiter: ',' } as object)).toThrow(/delimiter/);
  await expect(session.read.any(join(folder, 'session.ndjson'), { decimalComma: true })).rejects.toThrow(
    /decimalComma acts only on text, and the input is ndjson/,
  );
});

test('DuckDB reads what we write, and we read what DuckDB writes', async () => {
  const duck = await duckdb();
  const file = join(folder, 'duck.ndjson');
  const query = `SELECT (i * 7919) % 1000 AS "user", i * 10000000000 + 1 AS item, ((i % 10) / 2.0)::DOUBLE AS rating, CASE WHEN i % 5 = 0 THEN NULL ELSE 'a "' || i || chr(10) || ', é' END AS note, i % 2 = 0 AS flag FROM range(5000) t(i)`;
  await duck.run(`COPY (${query}) TO '${file}' (FORMAT json)`);
  const expected = (await (await duck.runAndReadAll(query)).getRowsJS()).map(
    ([user, item, rating, note, flag]) => [Number(user), item, rating, note, flag],
  );
  const { columns, rows } = await readTable(new NdjsonSource(file));
  expect(columns).toEqual(['user:Int32', 'item:Int64', 'rating:Float64', 'note:Utf8', 'flag:Bool']);
  expect(rows).toEqual(expected);
  const batches: RecordBatch[] = [];
  for await (const each of await new NdjsonSource(file).execute(context())) batches.push(each);
  await write('ours.ndjson', batches);
  const theirs = await (
    await duck.runAndReadAll(
      `SELECT * FROM read_json('${join(folder, 'ours.ndjson')}', format = 'newline_delimited')`,
    )
  ).getRowsJS();
  expect(theirs.map(([user, item, rating, note, flag]) => [Number(user), item, rating, note, flag])).toEqual(
    expected,
  );
});

describe('what is written', () => {
  const batch = table([
    ['user', new Int64(), [9007199254740993n, 2n, null]],
    ['item', new Utf8(), ['a "b"\n', '', null]],
    ['rating', new Float32(), [0.1, 4, null]],
    ['flag', new Bool(), [true, false, null]],
  ]);
  const text =
    '{"user":9007199254740993,"item":"a \\"b\\"\\n","rating":0.1,"flag":true}\n{"user":2,"item":"","rating":4.0,"flag":false}\n{"user":null,"item":null,"rating":null,"flag":null}\n';

  test('an object a line, packed by the ending', async () => {
    expect((await write('plain.ndjson', [batch])).toString()).toBe(text);
    expect(gunzipSync(await write('packed.jsonl.gz', [batch])).toString()).toBe(text);
    for (const ending of ['.gz', '.lz4', ...(hasZstd() ? ['.zst'] : [])]) {
      await write(`packed.ndjson${ending}`, [batch, batch]);
      expect((await readTable(new NdjsonSource(join(folder, `packed.ndjson${ending}`)))).rows).toHaveLength(
        6,
      );
    }
  });

  test('NaN and infinities, which JSON lacks, become null', async () => {
    expect(
      (
        await write('special.ndjson', [
          table([['x', new Float64(), [Number.NaN, Number.POSITIVE_INFINITY, 1]]]),
        ])
      ).toString(),
    ).toBe('{"x":null}\n{"x":null}\n{"x":1.0}\n');
  });
});
