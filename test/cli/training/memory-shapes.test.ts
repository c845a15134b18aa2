/**
 * Resident memory of whole commands on inputs that unpack to far more than they store; Parquet files in
 * `npm run test:deep`.
 */
import {
  Dictionary,
  Float32,
  Int32,
  makeData,
  makeVector,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { duckdb } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { isDeep } from '../../support/deep.ts';
import { argv, start } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const MiB = 2 ** 20;
const TEXT = 64 << 10;
const ROWS = 6000;

beforeAll(async () => {
  const dictionary = vectorFromArray(['u'.repeat(TEXT)], new Utf8());
  const user = makeVector(
    makeData({
      type: new Dictionary(new Utf8(), new Int32(), 1),
      length: ROWS,
      nullCount: 0,
      data: new Int32Array(ROWS),
      dictionary,
    }),
  );
  const item = makeVector(
    makeData({
      type: new Int32(),
      length: ROWS,
      nullCount: 0,
      data: Int32Array.from({ length: ROWS }, (_, i) => i),
    }),
  );
  const rating = makeVector(
    makeData({ type: new Float32(), length: ROWS, nullCount: 0, data: new Float32Array(ROWS).fill(3) }),
  );
  writeFileSync(path('bomb.arrow'), tableToIPC(new Table({ user, item, rating }), 'file'));
  if (!isDeep) return;
  const connection = await duckdb();
  await connection.run(
    `COPY (SELECT repeat('u', ${TEXT}) AS "user", i::INTEGER AS item, 3::FLOAT AS rating FROM range(${ROWS}) t(i)) TO '${path('bomb.parquet')}' (FORMAT parquet, ROW_GROUP_SIZE 2048)`,
  );
  await connection.run(
    `COPY (SELECT (i * 7919 % 20011)::BIGINT * 1000003 AS "user", (i * 104729 % 1009)::INTEGER AS item, (i % 10)::FLOAT AS rating FROM range(3000000) t(i)) TO '${path('two-groups.parquet')}' (FORMAT parquet, ROW_GROUP_SIZE 1500000)`,
  );
});

const train = (input: string, ...more: string[]) =>
  start(argv`train ${path(input)} --model-dir ${path(`model-${input}`)} --rank 2 --max-iter 1
    --no-biases --workers 1 --device cpu --json --quiet --force ${more}`).outcome;

interface Trained {
  readonly ratings: number;
  readonly users: number;
  readonly peakRssBytes: number;
}

describe('the memory of a training', () => {
  it.each(['bomb.arrow', ...(isDeep ? ['bomb.parquet'] : [])])(
    'does not grow with one text of 64 KiB that a dictionary has for 6,000 rows: %s',
    async (input) => {
      const { code, stdout } = await train(input);
      expect(code).toBe(0);
      const { ratings, users, peakRssBytes } = JSON.parse(stdout) as Trained;
      expect([ratings, users]).toEqual([ROWS, 1]);
      // The rows unpack to 375 MiB, beside about 200 MiB of any process.
      expect(peakRssBytes).toBeLessThan(560 * MiB);
    },
  );

  it.runIf(isDeep)('is kept where the budget allows one row group at a time', async () => {
    const refused = await train('two-groups.parquet', '--memory-budget', '150MiB');
    expect(refused.code).toBe(4);
    const least = /Raise --memory-budget to ([\d.]+) MiB/.exec(refused.stderr)?.[1] as string;
    const { code, stdout } = await train('two-groups.parquet', '--memory-budget', `${least}MiB`);
    expect(code).toBe(0);
    const { ratings, peakRssBytes } = JSON.parse(stdout) as Trained;
    expect(ratings).toBe(3_000_000);
    expect(peakRssBytes).toBeLessThan(1.2 * Number(least) * MiB);
  });
});
