/**
 * Folders that are named by values, against DuckDB in both directions. FACTORFLOW_SEED draws other tables.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, col, type Dataset } from '../../../index.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  batchOfCells,
  drawCells,
  duckTable,
  exactly,
  plainCell,
  type RandomColumns,
  randomColumns,
} from '../../engine/expressions/random-rows.ts';
import { isDeep } from '../../support/deep.ts';
import { cellsOf } from '../../engine/expressions/evaluated.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { drawnNumbers } from '../../support/drawn-numbers.ts';

const random = drawnNumbers();
const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const ROWS = 300;

const SPECIAL = [
  'a b',
  'a/b',
  'a=b',
  '100%',
  "it's",
  '"q"',
  'é',
  '日本',
  '😀',
  '',
  'x\ty',
  '#?*:[]{}^\\',
  '..',
  '%41',
  'null',
];

const drawn: RandomColumns = {
  n: { kind: 'int', type: 'int32', sql: 'INTEGER', draw: () => Math.floor(random() * 1e9) },
  ...randomColumns(random),
  p: {
    kind: 'text',
    type: 'utf8',
    sql: 'VARCHAR',
    draw: () => SPECIAL[Math.floor(random() * SPECIAL.length)],
  },
};
const cells = drawCells(drawn, ROWS, () => random() < 0.1);
let data: Dataset;

const session = await cpuSession();
beforeAll(async () => {
  const whole = batchOfCells(drawn, cells);
  data = session.from([whole.slice(0, 100), whole.slice(100, 110), whole.slice(110, ROWS)]);
  const db = await duckdb();
  const inSql = Object.fromEntries(
    Object.entries(cells).map(([name, own]) => [
      name,
      own.map((cell) => (typeof cell === 'string' ? cell.replaceAll("'", "''") : cell)),
    ]),
  );
  for (const statement of duckTable('t', drawn, inSql, 'ord')) await db.run(statement);
});

const sorted = (rows: readonly (readonly unknown[])[]) =>
  rows
    .map((row) =>
      JSON.stringify(row, (_, value: unknown) =>
        typeof value === 'bigint'
          ? `${value}n`
          : Object.is(value, -0)
            ? 0
            : typeof value === 'number' && !Number.isFinite(value)
              ? `${value}`
              : value,
      ),
    )
    .sort();

/** Our rows of these columns, as plain cells. */
async function ours(rows: Dataset, names: readonly string[]): Promise<unknown[][]> {
  const found: unknown[][] = [];
  for await (const batch of await rows.select(...names).stream()) {
    const columns = batch.data.children.map((column) => cellsOf(column));
    for (let row = 0; row < batch.numRows; row++)
      found.push(names.map((name, i) => plainCell(columns[i][row], drawn[name].kind)));
  }
  return found;
}

const duckCells = async (names: readonly string[], from: string, textOf = (name: string) => `"${name}"`) =>
  (
    await duckRows(
      `SELECT ${names.map((name) => exactly(drawn[name].kind, textOf(name))).join(', ')} FROM ${from}`,
    )
  ).map((row) => row.map((cell, i) => plainCell(cell, drawn[names[i]].kind)));

const keys = Object.keys(drawn).filter((name) => name !== 'n');

describe.each(keys.filter((key, at) => isDeep || key === 'p' || at % 5 === 0))(
  'folders of the column %s',
  (key) => {
    const names = ['n', key];
    // An empty text is null in folders.
    const expected = () =>
      duckCells(names, 't', (name) => (drawn[name].type === 'utf8' ? `nullif("${name}", '')` : `"${name}"`));

    it('written here are read by DuckDB', async () => {
      const to = path(`ours-${key}`);
      const written = await data
        .select(...names)
        .write.partitionBy(key)
        .parquet(to);
      expect(written.rows).toBe(ROWS);
      // DuckDB takes the text "null" in the name of a folder for a null.
      const from = `read_parquet('${to}/*/*.parquet', hive_partitioning = true, hive_types_autocast = false)`;
      const here = (await expected()).map(([n, value]) => [n, value === 'null' ? null : value]);
      expect(sorted(await duckCells(names, from, (name) => `"${name}"::${drawn[name].sql}`))).toEqual(
        sorted(here),
      );
      expect(
        await duckRows(
          `SELECT count(*) FROM read_parquet('${to}/*/*.parquet', hive_partitioning = false) WHERE "n" IS NULL`,
        ),
      ).toEqual(await duckRows(`SELECT count(*) FROM t WHERE n IS NULL`));
    });

    it('written here are read here, with the type that is given', async () => {
      const back = session.read.parquet(path(`ours-${key}`), { partitions: { [key]: drawn[key].type } });
      expect((await back.schema()).fields.map(({ name }) => name)).toEqual(names);
      expect(sorted(await ours(back, names))).toEqual(sorted(await expected()));
      expect(await back.count()).toBe(ROWS);
      expect(sorted(await ours(back, [key]))).toEqual(sorted((await expected()).map(([, value]) => [value])));
    });

    it('written by DuckDB are read here', async () => {
      const to = path(`duck-${key}`);
      await (
        await duckdb()
      ).run(`COPY (SELECT n, "${key}" FROM t) TO '${to}' (FORMAT parquet, PARTITION_BY ("${key}"))`);
      const back = session.read.parquet(to, { partitions: { [key]: drawn[key].type } });
      expect(sorted(await ours(back, names))).toEqual(sorted(await duckCells(names, 't')));
    });
  },
);

it.each(['csv', 'arrow'] as const)('%s in folders of two columns is read back', async (format) => {
  const names = ['n', 'i', 'p', 'g'];
  const rows = data.select(...names).filter(col('n').isNotNull());
  await rows.write.partitionBy('p', 'i')[format](path(`two-${format}`));
  const back = session.read[format](path(`two-${format}`), { partitions: { i: 'int32' } });
  expect((await back.schema()).fields.map(({ name }) => name)).toEqual(['n', 'g', 'p', 'i']);
  expect(sorted(await ours(back, names))).toEqual(
    sorted(
      await duckCells(names, 't WHERE n IS NOT NULL', (name) =>
        name === 'p' ? `nullif(p, '')` : `"${name}"`,
      ),
    ),
  );
  const some = back.filter(col('p').eq('a/b'));
  expect((await some.toArray()).length).toBe(
    Number((await duckRows(`SELECT count(*) FROM t WHERE p = 'a/b' AND n IS NOT NULL`))[0][0]),
  );
});

describe('a folder of ratings', () => {
  it.each(['user', 'rating'])('trains where %s is in the names of folders', async (column) => {
    const made = Array.from({ length: 400 }, (_, i) => ({
      user: i % 20,
      item: (i * 7) % 23,
      rating: (i % 9) / 2 + 0.5,
    }));
    await session
      .fromRows(made)
      .write.partitionBy(column)
      .parquet(path(`ratings-${column}`));
    const pair = session.fromRows([{ user: 1, item: 7 }]);
    const fit = async (rows: Dataset) => {
      const model = await new ALS({ rank: 4, maxIter: 2 }).fit(rows);
      const [row] = await model.predict(pair).toArray();
      return Number(row.prediction);
    };
    const expected = await fit(session.fromRows(made));
    expect(await fit(session.read.parquet(path(`ratings-${column}`)))).toBeCloseTo(expected, 4);
  });
});

it('rows that are read by threads have the values of their folders', async () => {
  const made = Array.from({ length: 20_000 }, (_, i) => ({ i, k: i % 4 }));
  await session.fromRows(made).write.partitionBy('k').parquet(path('threads'));
  cpSync(path('threads'), path('threads-2'), { recursive: true });
  renameSync(path('threads-2/k=0'), path('threads-2/k=4'));
  const small = await cpuSession({ workers: 3, splitBytes: 2000 });
  const wrong = col('i').mod(4).ne(col('k'));
  expect(await small.read.parquet(path('threads')).filter(wrong).count()).toBe(0);
  expect(await small.read.parquet(path('threads-2')).filter(wrong).count()).toBe(5000);
});

it('a run that is killed while it writes leaves nothing that is taken for data', async () => {
  const script = `
    import { Session } from ${JSON.stringify(join(import.meta.dirname, '../../../dist/index.js'))};
    const session = await Session.create({ device: 'cpu', workers: 1 });
    const rows = Array.from({ length: 1000 }, (_, i) => ({ i, k: i % 50 }));
    await session.fromRows(rows).write.partitionBy('k').parquet(${JSON.stringify(path('killed/out'))}, { overwrite: true });
    await session.close();`;
  const run = (dieAt: string) =>
    execFileSync(
      process.execPath,
      [
        '--import',
        join(import.meta.dirname, '../../support/faults/die-at-call.mjs'),
        '--input-type=module',
        '-e',
        script,
      ],
      { env: { ...process.env, FACTORFLOW_DIE_AT: dieAt }, stdio: 'pipe' },
    );
  expect(() => run('rename:1:before')).toThrow();
  expect(readdirSync(path('killed')).every((name) => name.startsWith('.'))).toBe(true);
  await expect(session.read.parquet(path('killed/out')).schema()).rejects.toThrow('no such file or folder');
  run('');
  expect(readdirSync(path('killed'))).toEqual(['out']);
  expect(await session.read.parquet(path('killed/out')).count()).toBe(1000);
});
