/** Ids in Arrow files that a page cannot use are errors with the file; none is taken for another id. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type DataType,
  FixedSizeList,
  Float32,
  Float64,
  Field,
  Int32,
  Int64,
  Table,
  tableToIPC,
  Uint64,
  Utf8,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BlockCache } from '../../browser/cached-file.ts';
import { DataError, openModel, openNames } from '../../browser/index.ts';
import { ALS, Session } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

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
    const session = await Session.create({ device: 'cpu', workers: 1 });
    const trained = await new ALS({ rank: 4, maxIter: 1 }).fit(
      session.fromRows(randomRatings(3, 30, ITEMS, 600)),
    );
    await trained.save(model);
    await session.close();
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
