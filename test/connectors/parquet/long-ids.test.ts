/** Text ids that are too long are refused by their lengths, before the decoder copies the texts. */
import { Field, Schema, Utf8 } from 'apache-arrow';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { openRandomAccess } from '../../../connectors/files/random-access.ts';
import { readFooterOf } from '../../../connectors/parquet/footer.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import {
  LARGE_PAGE,
  requireShortIdsIn,
  textLengths,
} from '../../../connectors/parquet/parquet-wasm/parquet-wasm-backend.ts';
import { CapacityError } from '../../../engine/errors.ts';
import { idTooLong } from '../../../engine/keys/arrow-keys.ts';
import { andThen, fromSource, sourceRequest } from '../../../engine/stream/logical-plan.ts';
import { Filter } from '../../../operators/dataflow/filter.ts';
import { orPlanned } from '../../../operators/planner/memory-budget.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { duckdb, outcome } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const LONG = (1 << 24) + 1;

async function write(name: string, rows: string, options: string): Promise<string> {
  const file = join(folder, `${name}.parquet`);
  await (await duckdb()).run(`COPY (${rows}) TO '${file}' (FORMAT parquet, ${options})`);
  return file;
}

/** Checks the column `user`; the reads that it took. */
async function check(file: string, largePage: number): Promise<{ readonly fetches: number }> {
  const handle = await openRandomAccess(file);
  const counter = { fetches: 0, bytes: 0 };
  try {
    const opened = { file, handle, footer: await readFooterOf(handle, file), counter };
    await requireShortIdsIn(opened, 0, new Schema([new Field('user', new Utf8(), true)]), largePage);
    return counter;
  } finally {
    await handle.close();
  }
}

test('the row is found, in plain pages and in a dictionary', async () => {
  const codec = 'zstd';
  const one = (long: string) =>
    `SELECT * FROM (VALUES ('a', 1), ('b', 2), (${long}, 3), ('c', 4)) t("user", item)`;
  const plain = await write(`plain-${codec}`, one(`repeat('x', ${LONG})`), `CODEC ${codec}`);
  const dictionary = await write(
    `dictionary-${codec}`,
    `SELECT if(i < 2, 'a', repeat('x', ${LONG})) AS "user", i AS item FROM range(4) t(i)`,
    `CODEC ${codec}, STRING_DICTIONARY_PAGE_SIZE_LIMIT 100000000`,
  );
  for (const file of [plain, dictionary]) {
    const failure = await outcome(() => check(file, 1 << 20));
    expect(failure).toBeInstanceOf(CapacityError);
    expect(failure).toMatchObject({
      message: expect.stringContaining('16,777,217 bytes of text') as string,
      details: { rowGroup: 0, row: 2, column: 'user' },
    });
  }
});

test('a column without large pages is not searched, and short texts are not refused', async () => {
  const file = await write(
    'short',
    `SELECT 'user ' || i AS "user", i AS item FROM range(5000) t(i)`,
    'CODEC zstd',
  );
  expect(await check(file, LARGE_PAGE)).toMatchObject({ fetches: 0 });
  expect((await check(file, 1)).fetches).toBeGreaterThan(0);
});

test('only requests of a consumer of all ids name them', async () => {
  const file = await write('named', `SELECT 'a' AS "user", 1 AS item`, 'CODEC zstd');
  const source = new ParquetSource(file);
  const needs = { numbers: [], takesFaults: true, ids: ['user', 'item'] } as const;
  expect(await source.requests(undefined, needs)).toMatchObject([{ ids: ['user', 'item'] }]);
  const plan = new SelectRatings({ user: 'user', item: 'item' });
  expect(plan.needs.ids).toEqual(['user', 'item']);
  const from = fromSource(source);
  expect(sourceRequest(andThen(from, plan)).needs).toMatchObject({ ids: ['user', 'item'] });
  const some = andThen(from, new Filter(parseExpression('item > 1')));
  expect(sourceRequest(andThen(some, plan)).needs).toEqual({
    numbers: [],
    takesFaults: true,
    texts: ['user'],
  });
});

test('the lengths of texts are read without the texts', () => {
  const page = Uint8Array.from([2, 0, 0, 0, 97, 98, 0, 0, 0, 0, 1, 0, 0, 0, 99]);
  expect([...new Uint32Array(textLengths(page, 3).buffer)]).toEqual([2, 0, 1]);
  for (const cut of [page.subarray(0, 14), Uint8Array.from([...page, 9])])
    expect(() => textLengths(cut.slice(), 3)).toThrow(/a page of texts/);
});

test('a file with such an id is not read again to plan for a smaller budget', async () => {
  const failing = (error: Error) => () => Promise.reject(error);
  let plans = 0;
  const plan = async () => void plans++;
  const long = idTooLong(LONG, { file: 'ratings.parquet', row: 2, column: 'user' });
  await expect(orPlanned(failing(long), plan, true)).rejects.toBe(long);
  expect(plans).toBe(0);
  const budget = new CapacityError('more than 10 ratings do not fit', { phase: 'read' });
  await expect(orPlanned(failing(budget), plan, true)).rejects.toBe(budget);
  expect(plans).toBe(1);
});
