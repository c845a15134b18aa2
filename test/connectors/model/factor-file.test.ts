import { makeVector } from 'apache-arrow';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parquetReadObjects } from 'hyparquet';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Session } from '../../../api/session.ts';
import type { IdColumn } from '../../../connectors/model/id-column.ts';
import { loadModel, saveModel, type StoredModel } from '../../../connectors/model/model-store.ts';
import { factorFile } from '../../../connectors/model/write-factors.ts';
import { CancelledError } from '../../../engine/errors.ts';
import { wholeRows } from '../../../engine/row-parts.ts';
import { duckRows } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);

function file(
  name: string,
  ids: IdColumn,
  factors: Float32Array,
  rank: number,
  from: number,
  to: number,
): string {
  writeFileSync(path(name), Buffer.concat([...factorFile(ids, wholeRows(factors, rank), from, to)].flat()));
  return path(name);
}

const numbers = (count: number) => Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(i)));
const textIds = (texts: readonly string[]): IdColumn => {
  const encoded = texts.map((text) => Buffer.from(text));
  const offsets = new Int32Array(texts.length + 1);
  for (const [i, { length }] of encoded.entries()) offsets[i + 1] = offsets[i] + length;
  return { type: 'utf8', offsets, bytes: Buffer.concat(encoded) };
};

describe('a part file has the rows and factors that it was given', () => {
  const cases: readonly (readonly [string, IdColumn, number, number, number])[] = [
    ['int32', { type: 'int32', values: Int32Array.from({ length: 100 }, (_, i) => i * 3 - 50) }, 7, 0, 100],
    [
      'int64, some rows',
      { type: 'int64', values: BigInt64Array.from({ length: 50 }, (_, i) => BigInt(i) * 2n ** 40n) },
      64,
      10,
      40,
    ],
    ['text', textIds(['', 'a', 'b', 'ä\u{1F600}', 'z'.repeat(100)]), 3, 0, 5],
    ['rank 1', { type: 'int32', values: Int32Array.of(1, 2, 3) }, 1, 0, 3],
    [
      'several pages',
      { type: 'int32', values: Int32Array.from({ length: 1500 }, (_, i) => i) },
      300,
      0,
      1500,
    ],
    [
      'several row groups',
      { type: 'int32', values: Int32Array.from({ length: 1100 }, (_, i) => i) },
      4096,
      0,
      1100,
    ],
    ['no row', { type: 'int32', values: new Int32Array(0) }, 5, 0, 0],
  ];

  test.each(cases)('%s', async (name, ids, rank, from, to) => {
    const factors = numbers((ids.type === 'utf8' ? ids.offsets.length - 1 : ids.values.length) * rank);
    const written = file(`${name}.parquet`, ids, factors, rank, from, to);
    const expected = Array.from({ length: to - from }, (_, row) => {
      const id =
        ids.type === 'utf8'
          ? Buffer.from(ids.bytes.subarray(ids.offsets[from + row], ids.offsets[from + row + 1])).toString()
          : ids.values[from + row];
      return [id, factors.subarray((from + row) * rank, (from + row + 1) * rank)] as const;
    });
    const bytes = readFileSync(written);
    const objects = await parquetReadObjects({
      file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
    });
    expect(objects.map(({ id }) => id)).toEqual(expected.map(([id]) => id));
    // As bytes: millions of numbers take seconds to compare one by one.
    const read = new Float32Array((to - from) * rank);
    for (const [row, { features }] of objects.entries()) {
      expect(features).toHaveLength(rank);
      read.set(features as number[], row * rank);
    }
    const part = factors.slice(from * rank, to * rank);
    expect(Buffer.from(read.buffer).equals(Buffer.from(part.buffer))).toBe(true);
    const [[count, length, first, last]] = await duckRows(
      `SELECT count(*)::INTEGER, coalesce(min(len(features)), ${rank}), min(features[1]), max(features[${rank}]) FROM '${written}'`,
    );
    const column = (at: number) => expected.map(([, features]) => features[at]);
    expect([count, Number(length)]).toEqual([to - from, rank]);
    if (to > from)
      expect([first, last]).toEqual([
        column(0).reduce((a, b) => Math.min(a, b)),
        column(rank - 1).reduce((a, b) => Math.max(a, b)),
      ]);
  });

  test('and bounds of the ids that other programs skip row groups by', async () => {
    const bounds = await duckRows(
      `SELECT row_group_id::INTEGER, row_group_num_rows::INTEGER, stats_min_value, stats_max_value FROM parquet_metadata('${path('several row groups.parquet')}') WHERE path_in_schema = 'id'`,
    );
    expect(bounds).toEqual([
      [0, 1024, '0', '1023'],
      [1, 76, '1024', '1099'],
    ]);
    expect(
      await duckRows(`SELECT id FROM '${path('several row groups.parquet')}' WHERE id BETWEEN 1022 AND 1025`),
    ).toEqual([[1022], [1023], [1024], [1025]]);
  });
});

describe('a model of several parts', () => {
  const [rows, rank] = [1500, 4000];
  const ids = (count: number) => makeVector(Int32Array.from({ length: count }, (_, i) => 2 * i));
  const model: StoredModel = {
    rank,
    userIds: ids(rows),
    userFactors: numbers(rows * rank),
    itemIds: ids(300),
    itemFactors: numbers(300 * rank),
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    factorflow: {},
  };
  const contents = (name: string) =>
    readdirSync(path(name), { recursive: true })
      .map(String)
      .filter((entry) => entry.includes('part-'))
      .sort()
      .map((entry) => [entry, readFileSync(join(path(name), entry))] as const);

  test('is the same bytes for any number of threads, and none', async () => {
    await saveModel(path('alone'), model);
    const alone = contents('alone');
    expect(alone.map(([name]) => name)).toEqual([
      'itemFactors/part-00000.parquet',
      'metadata/part-00000',
      ...[0, 1].map((part) => `userFactors/part-0000${part}.parquet`),
    ]);
    const session = await cpuSession();
    await saveModel(path('by-2'), model, { executor: session.context().executor });
    expect(
      contents('by-2').map(([name, bytes], i) => name === alone[i][0] && bytes.equals(alone[i][1])),
    ).toEqual(alone.map(() => true));
    const loaded = await loadModel(path('by-2'));
    expect(
      Buffer.compare(Buffer.from(loaded.userFactors.buffer), Buffer.from(model.userFactors.buffer)),
    ).toBe(0);
  });

  test('of which a thread cannot write one leaves nothing, and names the model', async () => {
    await using session = await Session.create({ device: 'cpu', workers: 2 });
    const { executor } = session.context();
    mkdirSync(path('old'));
    await expect(
      saveModel(path('old/model'), { ...model, userFactors: new Float32Array(7) }, { executor }),
    ).rejects.toThrow(/user factors have 7 values/);
    const controller = new AbortController();
    const saving = saveModel(path('old/model'), model, { executor, signal: controller.signal });
    setImmediate(() => controller.abort());
    await expect(saving).rejects.toThrow(CancelledError);
    expect(readdirSync(path('old'))).toEqual([]);
  });
});
