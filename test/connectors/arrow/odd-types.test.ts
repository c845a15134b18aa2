/** Arrow's rarer types: read, moved by operators, and written again. */
import {
  type Data,
  type DataType,
  DenseUnion,
  Field,
  Int32,
  Interval,
  IntervalUnit,
  LargeList,
  makeData,
  Map_,
  Null,
  RecordBatch,
  Schema,
  SparseUnion,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { col, type Dataset } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const session = await cpuSession({ workers: 1 });

const of = (type: DataType, values: readonly unknown[]): Data => vectorFromArray(values, type).data[0];
const entries = new Struct([new Field('key', new Utf8(), false), new Field('value', new Int32(), true)]);
const alternatives = [new Field('n', new Int32(), true), new Field('t', new Utf8(), true)];
const [numbers, texts] = [of(new Int32(), [5, null, 6]), of(new Utf8(), ['a', '\ufeffb', 'c'])];

const columns: readonly (readonly [name: string, data: Data, values: readonly unknown[]])[] = [
  ['null', makeData({ type: new Null(), length: 3 }), [null, null, null]],
  [
    'a large list',
    makeData({
      type: new LargeList(new Field('item', new Int32(), true)),
      length: 3,
      nullCount: 1,
      nullBitmap: Uint8Array.of(5),
      valueOffsets: BigInt64Array.of(0n, 2n, 2n, 3n),
      child: numbers,
    } as never) as Data,
    [[5, null], null, [6]],
  ],
  [
    'a map',
    of(new Map_(new Field('entries', entries, false) as never), [{ k: 1 }, null, {}]),
    [{ k: 1 }, null, {}],
  ],
  [
    'an interval',
    makeData({
      type: new Interval(IntervalUnit.MONTH_DAY_NANO) as never,
      length: 3,
      nullCount: 1,
      nullBitmap: Uint8Array.of(5),
      data: Int32Array.of(1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0),
    }) as Data,
    ['1 month 2 days 00:00:00.000000003', null, '00:00:00.000000005'],
  ],
  [
    'a sparse union',
    makeData({
      type: new SparseUnion([0, 1], alternatives),
      length: 3,
      typeIds: Int8Array.of(0, 1, 0),
      children: [numbers, texts],
    } as never) as Data,
    [5, '\ufeffb', 6],
  ],
  [
    'a dense union',
    makeData({
      type: new DenseUnion([3, 7], alternatives),
      length: 3,
      typeIds: Int8Array.of(7, 3, 7),
      valueOffsets: Int32Array.of(1, 1, 0),
      children: [numbers, texts],
    } as never) as Data,
    ['\ufeffb', null, 'a'],
  ],
];

const keys = of(new Int32(), [1, 2, 3]);

async function written(name: string, x: Data): Promise<Dataset> {
  const schema = new Schema([new Field('k', keys.type), new Field('x', x.type, true)]);
  const children = [keys, x];
  const batch = new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: 3, nullCount: 0, children }),
  );
  await session.from([batch]).write.arrow(join(folder, `${name}.arrow`), { overwrite: true });
  return session.read.arrow(join(folder, `${name}.arrow`));
}

describe.each(columns)('%s', (name, data, values) => {
  it('is read, written and moved by joins', async () => {
    const rows = await written(name, data);
    const all = values.map((x, i) => ({ k: i + 1, x }));
    expect(await rows.toArray()).toEqual(all);
    expect(await rows.select('k').toArray()).toEqual([{ k: 1 }, { k: 2 }, { k: 3 }]);
    const other = session.fromRows([
      { k: 3, o: 1 },
      { k: 9, o: 2 },
    ]);
    const joined = async (how: 'left' | 'right' | 'full') =>
      (await other.join(rows, 'k', how).toArray()).sort((a, b) => Number(a.k) - Number(b.k));
    expect(await joined('left')).toEqual([
      { k: 3, o: 1, x: values[2] },
      { k: 9, o: 2, x: null },
    ]);
    expect(await joined('right')).toEqual(all.map(({ k, x }) => ({ k, o: k === 3 ? 1 : null, x })));
    expect((await joined('full')).map(({ x }) => x)).toEqual([...values, null]);
    expect((await rows.filter(col('k').gt(5)).collect()).numRows).toBe(0);
  });
});

/** A file of pyarrow: run-end encoded `ree`, int32 `k`, list view `lview`, text `t`. */
const UNREAD = inflateSync(
  Buffer.from(
    'eNrtVL1KA0EQnr1/wiFXhKBgcUUKCxvBwjbdFYKQRjsNemAwBkku8R7Cx7CwtLTwIfJAQvxmd07XNQcpLRyY3Z2Zb77dndm7wXB4dn5EtIa8KKKMWDqUUkQhJVhBVACbYCUYAxmNvkOfoIdi98GDhJB5uuLTFNAKeop4YTB7HN8XjBJ8CJ0sx+Uj5hq4ymA95tu1+HgeV+U9r3ONIZVjeLbw7v53sn+DXRlsj3lzwXrQW74H1IfOyhL+QMcyMCaoS6yrkUmtfp8tgi5Hk0U5R32s/Uw+Ofmk8/tWPmNmi+llOb2ZGzuFxtrfcDX96kpOSj3pWKrZyQ/0mWpqpAM71d3jnn6Q6bVP37JD7ZI4c5s/c+LZ1/mM5FY/WA6c+IljFw5f4cQvHL4rZ98HmT2LI3bu7cY32X6LrbaMe+JTslaWj+Tdk5WjNuTTlnkcH10b39q8P12PFK8l0i8kk/oFdGy9Pc59kw1fZa5/9Pr/+/8r3/8KFxrof/cnPqSBgw==',
    'base64',
  ),
);

/**
 * A file of pyarrow: texts in views `v`, list view of a dictionary `lview`, list view of texts in views `rv`,
 * int32 `k`, dictionary `d`, texts in views `w`.
 */
const UNREAD_VIEWS = inflateSync(
  Buffer.from(
    'eNrtVr9v00AUfnaccqqsykIBHKmDI3XIgEQrMTAwtHslUBcYW4ohESEp5ZSmUgdGhg4dM2bswNCxfwADA38IIyMT5nvnO+fymhQxABLipOfzu/fd+3Xv/Ly1s/PoyQZRgfE1IEqIxzLFtER1UnjDCCKKMJ1+Lwqel0CTgNeJPmA6Ad0Fsew9MBCkrKdh16iE0hFoBHlcGEyd5Q9BqwL3HKTgicKqwnts180weynI8PgIXd9Ke+E8e69A6x5+rbTbZFxqsYzjvSHocIh1YLaLaQypp5Pnrs5f8/smMNrTt+rpWwPVQb1hN+eYe8Al0KSQuRuIJoGnZZ7LHGyCsgV2lMnANA8KTwUtyobJez8b/Y1KP0dk9V+Jgf0bGr48Uz73c5s7MjYa9uRjo4nCiFy+Sn+WK39craRARlay7eXTjRotHrGdEzv7+wLBz1s/eFOVRXHxS3HcrOor9evrL8czOp7G8zj047k9G08tMjU3qRxfAZ9UlbKC5xlk960vNeF/4NmmmfiJbl0T37qY79l5V+B2RT4OBP9O4B3vzmcs5GOx/1zwlwJ/Kfz8IvxNg1m8452+tpC3hfyBkDve2etYfsPDqDm186d5zm9v0H/p+Dugvf5Ak3cP9j08Y/PDTHf2+pk+ynvDPHt2rPO3vKcDAcsznY90NniRdfWVeg48kjV/3T2Q+3633852bYGPTWE/9ew37d791s/ttxY40Jq2t8J9P8pvmDIdI7adgXtj2+s1Y+vwU5u4ied06H2ALsT9+hTO3pPUi/V/n//3+jz3ki3zr/cD5Sv2Zg==',
    'base64',
  ),
);

describe('run-end encoded columns and list views', () => {
  it('with dictionaries and texts in views do not hinder others of both', async () => {
    const path = join(folder, 'unread-views.arrow');
    writeFileSync(path, UNREAD_VIEWS);
    const rows = session.read.arrow(path).select('w', 'v', 'k', 'd');
    expect(await rows.toArray()).toEqual([
      { v: 'longer than twelve bytes', k: 1, d: 'x', w: 'longer than twelve bytes!' },
      { v: 'another long text of it', k: 2, d: 'y', w: 'another long text of it!' },
      { v: 'c', k: 3, d: 'x', w: 'c!' },
    ]);
  });

  it.each(['arrow', 'arrows'])('do not hinder others of a .%s file', async (extension) => {
    const path = join(folder, `unread.${extension}`);
    // A file is a stream between a mark of eight bytes and a footer.
    const end = UNREAD.length - 10 - UNREAD.readInt32LE(UNREAD.length - 10);
    writeFileSync(path, extension === 'arrow' ? UNREAD : UNREAD.subarray(8, end));
    const rows = session.read.arrow(path);
    expect(await rows.select('t', 'k').toArray()).toEqual([
      { t: 'a', k: 1 },
      { t: null, k: 2 },
      { t: 'c', k: 3 },
    ]);
    expect(await rows.count()).toBe(3);
    // The projection that the message advises, to all columns that are read.
    expect(await rows.select('k', 't').count()).toBe(3);
    expect((await rows.select('k', 't').toArray())[2]).toEqual({ k: 3, t: 'c' });
    await expect(rows.toArray()).rejects.toThrow(
      /left out.*run-end encoded.*: ree, lview \(.*\)\. Read the others/,
    );
  });
});

it('Parquet refuses unions and intervals of nanoseconds by name', async () => {
  for (const [name, data] of columns.filter(([, { type }]) => /Union|NANO/.test(String(type)))) {
    const rows = await written(name, data);
    await expect(rows.write.parquet(join(folder, 'x.parquet'), { overwrite: true })).rejects.toThrow(
      /Parquet cannot hold (Union|Interval|Dense|Sparse).*column "x"/,
    );
  }
});
