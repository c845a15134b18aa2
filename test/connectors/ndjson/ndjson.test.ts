import {
  Bool,
  type DataType,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { hasZstd } from '../../../connectors/compression/compressions.ts';
import { NdjsonSink, type NdjsonSinkOptions } from '../../../connectors/ndjson/ndjson-sink.ts';
import { NdjsonSource, type NdjsonSourceOptions } from '../../../connectors/ndjson/ndjson-source.ts';
import { DataError, Session, UsageError } from '../../../index.ts';
import { batchStream, placeOf } from '../../../engine/stream/stream.ts';
import { context, duckdb, temporaryFolder } from '../parquet/parquet-testing.ts';
import { readTable } from '../text/text-testing.ts';

const folder = temporaryFolder();
let files = 0;

function read(
  content: string | Uint8Array,
  options: NdjsonSourceOptions = {},
  columns?: readonly string[],
  name = `${files++}.ndjson`,
) {
  const file = join(folder, name);
  writeFileSync(file, content);
  return readTable(new NdjsonSource(file, options), columns);
}

async function fails(
  content: string | Uint8Array,
  pattern: RegExp,
  options: NdjsonSourceOptions = {},
  columns?: readonly string[],
) {
  const error = await read(content, options, columns).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DataError);
  expect(String(error)).toMatch(pattern);
}

function table(
  columns: readonly (readonly [name: string, type: DataType, values: readonly unknown[]])[],
): RecordBatch {
  const schema = new Schema(columns.map(([name, type]) => new Field(name, type, true)));
  const children = columns.map(
    ([, type, values]) =>
      vectorFromArray(values, type).data[0] ?? makeData({ type: type as Int32, length: 0 }),
  );
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: columns[0][2].length, nullCount: 0, children }),
  );
}

async function write(name: string, batches: readonly RecordBatch[], options: NdjsonSinkOptions = {}) {
  const all = (async function* () {
    yield* batches;
  })();
  await new NdjsonSink(join(folder, name), { overwrite: true, ...options }).consume(
    batchStream(batches[0].schema, all),
    context(),
  );
  return readFileSync(join(folder, name));
}

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
    expect([rows.length, rows[0], rows.at(-1)]).toEqual([100_001, [1, 2], [3, 5]]);
    const plain = `${'{"user":1,"item":"some text to fill the first part of the file"}\n'.repeat(80_000)}{"user":3,"new":4}\n`;
    await fails(
      plain,
      /line 80001: the field "new" is not among those of the first 4 MiB; name all fields in the option columns/,
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

describe('bad input', () => {
  test('a broken last line, and other lines that are no objects', async () => {
    await fails(
      '{"user":1,"item":2}\n{"user":2,"it',
      /line 2: the line is no whole JSON object: "\{\\"user\\":2,\\"it" \(.*\.ndjson\)\. Correct the line/,
    );
    for (const key of ['\\x', 'a\\u12', '\\ud800']) await fails(`{"user":1}\n{"${key}":2}\n`, /line 2: /);
    for (const key of ['\\x', '\\ud800']) await fails(`{"${key}":2}\n`, /line 1: /);
    // Both halves would become U+FFFD, and two ids one.
    for (const half of ['\\ud800', '\\uDFFF', 'a\\ud83d', '\\ude00\\ud83d'])
      await fails(`{"user":"a\\u0062"}\n{"user":"${half}"}\n`, /line 2: a text has half of a surrogate pair/);
    await fails('{"user":1}\n\n{"user":2\n', /line 3: the line is no whole JSON object/);
    await fails('{"user":1}\n{"user":2} {"user":3}\n', /line 2: something follows the JSON object/);
    await fails('{"user":1}\n5\n', /line 2: the line is no JSON object/);
    await fails(
      '[{"user":1},\n{"user":2}]\n',
      /line 1: a list stands where an object is expected: NDJSON has one object on each line/,
    );
    await fails('user,item\n1,2\n', /line 1: the line is no JSON object: "user,item"/);
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
      await fails(`{"a":1,"b":1}\n${line}\n`, /line 2: the line is no whole JSON object/);
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
    expect(() => new NdjsonSource('x', { types: { a: 'date' as 'utf8' } })).toThrow(
      /unknown column type "date"/,
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
      [null, null, 4, 'the line is no whole JSON object: "{\\"user\\":3,\\"ra"'],
      [4, null, 5, 'rating "[5]" is an object or a list, which no column holds'],
      [5, null, 6, undefined],
    ]);
  });
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

  test('any cells come back, in numbers of every kind', async () => {
    const cells = fc.array(
      fc.record({
        int: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { nil: null }),
        long: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { nil: null }),
        text: fc.option(
          fc.string({
            unit: fc.constantFrom('a', 'é', '😀', '\0', '"', '\\', '\n', '\u2028', '{', ','),
            maxLength: 9,
          }),
          { nil: null },
        ),
        double: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }), { nil: null }),
        flag: fc.option(fc.boolean(), { nil: null }),
      }),
      { minLength: 1, maxLength: 30 },
    );
    const types = { int: 'int32', long: 'int64', text: 'utf8', double: 'float64', flag: 'bool' } as const;
    await fc.assert(
      fc.asyncProperty(cells, async (rows) => {
        const column = (name: keyof (typeof rows)[0], type: DataType) =>
          [name, type, rows.map((row) => row[name])] as const;
        await write('any.ndjson', [
          table([
            column('int', new Int32()),
            column('long', new Int64()),
            column('text', new Utf8()),
            column('double', new Float64()),
            column('flag', new Bool()),
          ]),
        ]);
        expect((await readTable(new NdjsonSource(join(folder, 'any.ndjson'), { types }))).rows).toEqual(
          rows.map((row) => Object.values(row)),
        );
      }),
      { numRuns: 100, seed: 33 },
    );
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
