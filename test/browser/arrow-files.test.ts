/** Models in Arrow files: pages read the bytes that they need, and refuse what they cannot read. */
import { cpSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import {
  Binary,
  FixedSizeList,
  Float16,
  Float32,
  Int32,
  List,
  Field,
  makeData,
  Struct,
  RecordBatch,
  Schema,
  Table,
  tableToIPC,
  Utf8,
  type Vector,
  vectorFromArray,
  type DataType,
  Float64,
  Int64,
  Uint64,
} from 'apache-arrow';
import { beforeAll, describe, expect, it, afterAll } from 'vitest';
import { DataError, openModel, openNames } from '../../browser/index.ts';
import { ALS, type Model } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { served, PageServer } from './page-server.ts';
import { tmpdir } from 'node:os';
import { BlockCache } from '../../browser/cached-file.ts';
import { cpuSession } from '../support/cpu-session.ts';

const RANK = 12;
const site = served();
const { folder } = site;
const triples = randomRatings(23, 120, 600, 6000);
const ratings = triples.slice(0, 6).map(({ item, rating }) => ({ item, rating }));
let model: Model;
let items: { readonly id: number; readonly features: Float32Array }[] = [];

beforeAll(async () => {
  model = await new ALS({ rank: RANK, maxIter: 2, seed: 5 }).fit(site.session.fromRows(triples));
  await model.save(join(folder, 'model'));
  const rows = await site.session.read.parquet(join(folder, 'model/itemFactors')).toArray();
  items = rows.map((row) => ({
    id: Number(row.id),
    features: Float32Array.from(row.features as Iterable<number>),
  }));
});
/** A copy of the model whose item factors are Arrow files; other files stay Parquet. */
function copied(name: string, parts: readonly Uint8Array[]): string {
  cpSync(join(folder, 'model'), join(folder, name), { recursive: true });
  rmSync(join(folder, name, 'itemFactors/part-00000.parquet'));
  parts.forEach((part, i) => writeFileSync(join(folder, name, `itemFactors/part-0000${i}.arrow`), part));
  return `${site.server.url}/${name}`;
}

const width = () => items[0].features.length;
const ids = (rows = items) =>
  vectorFromArray(
    rows.map(({ id }) => id),
    new Int32(),
  );

function floatRows(kind: 'list' | 'fixed' | 'half', rows = items): Vector {
  const floats = kind === 'half' ? new Float16() : new Float32();
  const field = new Field('element', floats, false);
  const type = kind === 'list' ? new List(field) : new FixedSizeList(width(), field);
  return vectorFromArray(
    rows.map(({ features }) => Array.from(features)),
    type,
  );
}

function ipc(columns: Readonly<Record<string, Vector>>, batch = Infinity): Uint8Array {
  const table = new Table(columns);
  if (batch === Infinity) return tableToIPC(table, 'file');
  const cuts = Array.from({ length: Math.ceil(table.numRows / batch) }, (_, i) => i * batch);
  const parts = cuts.map((from) => table.slice(from, from + batch));
  const batches = parts.map((part) => copyOf(part));
  return tableToIPC(new Table(batches), 'file');
}

/** The rows of a slice as a batch that begins at its first row. */
function copyOf(part: Table): RecordBatch {
  const { fields } = part.schema;
  const children = fields.map(({ name, type }) => {
    const values = Array.from(part.getChild(name) as Iterable<unknown>, (value) =>
      typeof value === 'object' && value !== null ? Array.from(value as Iterable<number>) : value,
    );
    return vectorFromArray(values, type).data[0];
  });
  const data = makeData({ type: new Struct(fields), length: part.numRows, nullCount: 0, children });
  return new RecordBatch(new Schema(fields), data as never);
}

const recommended = async (url: string) => {
  const page = await openModel(url);
  const found = await page.recommend({ ratings }, 10);
  await page.close();
  return found;
};

describe('a model in Arrow files', () => {
  it.each(['list', 'fixed'] as const)('gives the results of Node: %s, in batches and parts', async (kind) => {
    const own = await model.recommend({ ratings }, 10);
    const rows = [items.slice(0, 250), items.slice(250)];
    const parts = rows.map((part) => ipc({ id: ids(part), features: floatRows(kind, part) }, 100));
    expect(await recommended(copied(`parts-${kind}`, parts))).toEqual(own);
    // Later parts are first asked for in the format of the first one.
    expect(site.server.missed).toEqual([`/parts-${kind}/itemFactors/part-00000.parquet`]);
  });

  it('ends when it is cancelled while its columns are read', async () => {
    // A long column after the others, whose bytes do not come with the first request then.
    const last = vectorFromArray(
      items.map(() => 'x'.repeat(200)),
      new Utf8(),
    );
    const url = copied('cancelled', [ipc({ id: ids(), features: floatRows('list'), last })]);
    const aborting = new AbortController();
    site.server.answer = ({ path, before }) => {
      if (!path.endsWith('.arrow') || before === 0) return false;
      aborting.abort();
      return true;
    };
    const opening = openModel(url, { signal: aborting.signal });
    await expect(opening).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('is written by Node', async () => {
    const url = copied('written', []);
    const rows = site.session.read.parquet(join(folder, 'model/itemFactors'));
    await rows.write.arrow(join(folder, 'items.arrow'));
    cpSync(join(folder, 'items.arrow'), join(folder, 'written/itemFactors/part-00000.arrow'));
    expect(await recommended(url)).toEqual(await model.recommend({ ratings }, 10));
  });

  it('reads the columns that it needs, each byte at most once', async () => {
    const other = vectorFromArray(
      items.map(({ id }) => `${id}`.padEnd(500, '.')),
      new Utf8(),
    );
    const file = ipc({ id: ids(), title: other, features: floatRows('fixed') });
    await recommended(copied('columns', [file]));
    const sent = site.server.sent.get('/columns/itemFactors/part-00000.arrow') as number;
    expect(file.length).toBeGreaterThan(items.length * 500);
    // The end of the file comes first: 64 KiB.
    expect(sent).toBeLessThan(65_536 + items.length * (4 + 4 * width()) + 4000);
  });

  it.each([
    ['half', 2],
    ['bytes', 1],
  ] as const)('may have smaller numbers: %s', async (kind, digits) => {
    const scales = items.map(({ features }) => Math.max(...features.map(Math.abs)) / 127);
    const bytes = items.map(
      ({ features }, row) =>
        new Uint8Array(Int8Array.from(features, (one) => Math.round(one / scales[row])).buffer),
    );
    const columns: Readonly<Record<string, Vector>> =
      kind === 'half'
        ? { id: ids(), features: floatRows('half') }
        : {
            id: ids(),
            features: vectorFromArray(bytes, new Binary()),
            scale: vectorFromArray(scales, new Float32()),
          };
    const found = await recommended(copied(kind, [ipc(columns)]));
    const own = await model.recommend({ ratings }, items.length);
    const scores = new Map(own.items.map(({ item, score }) => [item, score]));
    expect(found.items).toHaveLength(10);
    for (const { item, score } of found.items) expect(score).toBeCloseTo(scores.get(item)!, digits);
  });

  it('is refused if it is cut short, compressed, or has other columns', async () => {
    const whole = ipc({ id: ids(), features: floatRows('list') });
    const refused: readonly [string, Uint8Array, string][] = [
      ['cut', whole.subarray(0, 5000), 'the Arrow file is cut short or damaged'],
      ['no-features', ipc({ id: ids() }), 'the file has no column features'],
      [
        'text',
        ipc({
          id: ids(),
          features: vectorFromArray(
            items.map(() => 'x'),
            new Utf8(),
          ),
        }),
        'no number',
      ],
      ['short', ipc({ id: ids(items.slice(1)), features: floatRows('list', items.slice(1)) }), 'is missing'],
    ];
    for (const [name, file, message] of refused) {
      const error = await recommended(copied(name, [file])).catch((reason: unknown) => reason);
      expect(error, name).toBeInstanceOf(DataError);
      expect((error as Error).message, name).toContain(message);
    }
    const url = copied('packed', []);
    const rows = site.session.read.parquet(join(folder, 'model/itemFactors'));
    await rows.write.arrow(join(folder, 'packed.arrow'), { codec: 'lz4' });
    cpSync(join(folder, 'packed.arrow'), join(folder, 'packed/itemFactors/part-00000.arrow'));
    await expect(recommended(url)).rejects.toThrow('its buffers are compressed');
  });

  it('gives a result or a DataError when bytes of its end are damaged', async () => {
    const whole = ipc({ id: ids(), features: floatRows('list') });
    const url = copied('damaged', [whole]);
    for (let at = 3; at < 1200; at += 197) {
      const damaged = whole.slice();
      damaged[damaged.length - at] ^= 0x5a;
      site.server.answer = ({ path, response }) => {
        if (!path.endsWith('.arrow')) return false;
        response.writeHead(200).end(damaged);
        return true;
      };
      const outcome = await recommended(url).then(
        () => 'read',
        (error: unknown) => error,
      );
      if (outcome !== 'read') expect(outcome, `byte ${at} from the end`).toBeInstanceOf(DataError);
    }
  });
});

describe('ids', () => {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-arrow-ids-'));
  const ITEMS = 40;
  let server: PageServer | undefined;
  beforeAll(async () => {
    server = await PageServer.open(folder);
  });
  afterAll(async () => {
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  function write(name: string, columns: Readonly<Record<string, Vector>>): string {
    writeFileSync(join(folder, name), tableToIPC(new Table(columns), 'file'));
    return `${server?.url}/${name}`;
  }

  function names(file: string, values: readonly unknown[], type: DataType) {
    const titles = values.map((value) => `title of ${String(value)}`);
    return openNames(
      write(file, { id: vectorFromArray(values, type), name: vectorFromArray(titles, new Utf8()) }),
    );
  }

  describe('ids of a file of names', () => {
    const ids = Array.from({ length: 50 }, (_, k) => 2 * k);

    it('that descend are refused, and so are equal ones', async () => {
      const descending = await names('descending.arrow', ids.toReversed(), new Int32());
      await expect(descending.rows([4])).rejects.toThrow('the ids do not ascend at row');
      await expect(descending.rows([4])).rejects.toBeInstanceOf(DataError);
      const equal = await names(
        'equal.arrow',
        ids.map(() => 6),
        new Int32(),
      );
      await expect(equal.rows([5])).rejects.toThrow('the ids do not ascend at row');
    });

    it('may be whole floats, and NaN is no id', async () => {
      const whole = await names('floats.arrow', ids, new Float64());
      expect(await whole.rows([8, 9])).toEqual([{ id: 8, name: 'title of 8', attributes: {} }]);
      const broken = await names('nan.arrow', [0, NaN, 4], new Float64());
      await expect(broken.rows([4])).rejects.toThrow('the id of row 2 is NaN');
    });

    it('are found by the texts that Node finds, and by no others', async () => {
      const file = await names('texts.arrow', ids, new Int32());
      const asked = ['8', ' 10 ', '', '1e1', '0x4', 'NaN', 8.5];
      expect((await file.rows(asked)).map(({ id }) => id)).toEqual(['8', ' 10 ']);
      const wide = await names('wide.arrow', [2n ** 53n, 2n ** 53n + 1n], new Int64());
      const [row] = await wide.rows([`${2n ** 53n + 1n}`]);
      expect(row.name).toBe('title of 9007199254740993');
    });
  });

  describe('ids of a model in Arrow files', () => {
    let model = '';
    beforeAll(async () => {
      model = join(folder, 'model');
      const session = await cpuSession({ workers: 1 });
      const trained = await new ALS({ rank: 4, maxIter: 1 }).fit(
        session.fromRows(randomRatings(3, 30, ITEMS, 600)),
      );
      await trained.save(model);
      rmSync(join(model, 'itemFactors'), { recursive: true });
    });

    it.each([
      ['texts', new Utf8(), (id: number) => `${id}`],
      ['fractions', new Float32(), (id: number) => id + 0.5],
      ['larger numbers', new Uint64(), (id: number) => 2n ** 32n + BigInt(id)],
    ] as const)('of another type are refused: %s', async (name, type, idOf) => {
      const ids = Array.from({ length: ITEMS }, (_, id) => idOf(id));
      const rows = ids.map(() => [1, 2, 3, 4, 5, 6]);
      const list = new FixedSizeList(6, new Field('element', new Float32(), false));
      const copy = name.replace(' ', '-');
      cpSync(model, join(folder, copy), { recursive: true });
      cpSync(join(model, 'itemCounts'), join(folder, copy, 'itemFactors'), { recursive: true });
      rmSync(join(folder, copy, 'itemFactors/part-00000.parquet'));
      write(`${copy}/itemFactors/part-00000.arrow`, {
        id: vectorFromArray<DataType>(ids, type),
        features: vectorFromArray(rows, list),
      });
      const error = await openModel(`${server?.url}/${copy}`).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DataError);
      expect((error as Error).message).toContain('the ids are not int32, as the metadata say');
    });
  });

  it('a file in blocks reports the failed request of any block', async () => {
    let release = () => {};
    const slow = new Promise<void>((resolve) => (release = resolve));
    const file = new BlockCache(1 << 14).open({
      url: 'file',
      byteLength: 2 << 14,
      slice: async (start, end = 2 << 14) => {
        if (start > 0) throw new Error('the second block fails');
        await slow;
        return new ArrayBuffer(end - start);
      },
    });
    const first = file.slice(0, 10);
    const both = file.slice(0, 1 << 15).catch((error: unknown) => error);
    await new Promise((resolve) => setImmediate(resolve));
    release();
    expect(await both).toMatchObject({ message: 'the second block fails' });
    expect((await first).byteLength).toBe(10);
  });
});
