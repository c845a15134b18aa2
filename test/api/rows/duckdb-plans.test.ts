/**
 * Random chains of transformations over random tables give DuckDB's rows for the same query: optimized and
 * not, by one thread and by several, in memory and by files. There are 9 plans, and 400 in `npm run test:deep`; FACTORFLOW_PLANS sets
 * another number, and FACTORFLOW_SEED draws others.
 */
import { Dictionary, Int32, type RecordBatch, Utf8, vectorFromArray } from 'apache-arrow';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { executePlan } from '../../../engine/stream/logical-plan.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { exchangeRoomOf } from '../../../api/run-rows.ts';
import { type Dataset, Session } from '../../../index.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { batchOf, cellsOf } from '../../engine/expressions/evaluated.ts';
import {
  batchOfCells,
  type Cells,
  drawCells,
  furtherColumns,
  duckTable,
  exactly,
  plainCell,
  type RandomColumns,
  randomColumns,
  ZONE,
} from '../../engine/expressions/random-rows.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { isDeep } from '../../support/deep.ts';
import { type KindsByName, ORDER, type RandomPlan, RandomPlans } from './random-plans.ts';
import { drawnNumbers } from '../../support/drawn-numbers.ts';

const plans = Number(process.env.FACTORFLOW_PLANS ?? (isDeep ? 400 : 9));
const random = drawnNumbers();
const folder = temporaryFolder();
const sessions: Session[] = [];
/** A session whose exchanges have no room in memory. */
let inFiles: Session;

/** A table, as each session reads it. */
interface Source {
  readonly plan: RandomPlan;
  readonly open: (session: Session) => Dataset;
}
const sources: Source[] = [];

const all = { ...randomColumns(random), ...furtherColumns(random) };
const kindsOf = (columns: RandomColumns): KindsByName =>
  Object.fromEntries(Object.entries(columns).map(([name, { kind }]) => [name, kind]));

function pick(columns: RandomColumns, names: readonly string[]): RandomColumns {
  return Object.fromEntries(names.map((name) => [name, columns[name]]));
}

/** Batches of these rows, some of them empty. */
function batchesOf(columns: RandomColumns, cells: Cells, length: number): RecordBatch[] {
  const whole = batchOfCells(columns, cells);
  return Array.from({ length: Math.ceil(whole.numRows / length) + 1 }, (_, i) => [
    whole.slice(i * length, (i + 1) * length),
    whole.slice(0, 0),
  ]).flat();
}

async function addTable(
  name: string,
  columns: RandomColumns,
  rows: number,
  make: (cells: Cells) => Promise<Source['open']>,
): Promise<void> {
  const cells = drawCells(columns, rows, () => random() < 0.15);
  const duck = await duckdb();
  // DuckDB's sort-merge asOf join matches null times, its loop join does not.
  await duck.run('SET asof_loop_join_threshold = 1000000');
  for (const statement of duckTable(name, columns, cells, ORDER)) await duck.run(statement);
  const plan = { text: name, columns: kindsOf(columns), query: `SELECT * FROM ${name}` };
  sources.push({ plan: { ...plan, make: (table) => table }, open: await make(cells) });
}

/** Parquet files of some row groups each. */
async function parquet(name: string, columns: RandomColumns, cells: Cells, files: number): Promise<string[]> {
  const { length } = Object.values(cells)[0];
  const paths: string[] = [];
  for (let i = 0; i < files; i++) {
    const [from, to] = [i, i + 1].map((part) => Math.floor((part * length) / files));
    const own = Object.fromEntries(
      Object.entries(cells).map(([key, values]) => [key, values.slice(from, to)]),
    );
    paths.push(join(folder, `${name}-${i}.parquet`));
    const batch = batchOfCells(columns, own);
    await sessions[0].from([batch], batch.schema).write.parquet(paths[i], { rowGroupSize: 37 });
  }
  return paths;
}

/** The same rows, with one text column stored as codes of a dictionary. */
function withDictionary(columns: RandomColumns, cells: Cells): RecordBatch[] {
  const words = vectorFromArray([...cells.s], new Dictionary(new Utf8(), new Int32()));
  const { data, schema } = batchOfCells(columns, cells);
  const children = data.children.map((child, i) => (schema.fields[i].name === 's' ? words.data[0] : child));
  const made = batchOf(Object.fromEntries(schema.fields.map(({ name }, i) => [name, children[i]])));
  return [made.slice(0, 30), made.slice(30, 30), made.slice(30)];
}

beforeAll(async () => {
  await (await duckdb()).run(`SET TimeZone = '${ZONE}'`);
  for (const workers of isDeep ? [1, 2, 5] : [1, 3])
    sessions.push(await cpuSession({ workers, splitBytes: 2000 }));
  inFiles = await Session.create({
    device: 'cpu',
    workers: 2,
    splitBytes: 2000,
    spillDir: join(folder, 'spill'),
  });
  vi.spyOn(exchangeRoomOf(inFiles), 'take').mockReturnValue(false);
  for (const [name, rows, files] of [
    ['one_file', 150, 1],
    ['three_files', 200, 3],
    ['no_rows', 0, 1],
  ] as const)
    await addTable(name, all, rows, async (cells) => {
      const paths = await parquet(name, all, cells, files);
      return (session) => session.read.parquet(paths);
    });
  await addTable('in_memory', all, 120, async (cells) => {
    const batches = batchesOf(all, cells, 50);
    return (session) => session.from(batches);
  });
  const named = pick(all, ['i', 'f', 's', 'ts']);
  await addTable('with_dictionary', named, 100, async (cells) => {
    const batches = withDictionary(named, cells);
    return (session) => session.from(batches);
  });
  const printable = pick(all, ['i', 'j', 'g', 'e', 's']);
  const words = { ...printable, s: { ...printable.s, draw: () => all.s.draw() || 'none' } };
  await addTable('of_text', words, 250, async (cells) => {
    const path = join(folder, 'text.csv');
    const batch = batchOfCells(words, cells);
    await sessions[0].from([batch], batch.schema).write.csv(path);
    const types = { i: 'int32', j: 'int64', g: 'float32', e: 'float64', s: 'utf8' } as const;
    return (session) => session.read.csv(path, { types });
  });
});

afterAll(async () => {
  vi.restoreAllMocks();
  await inFiles.close();
});

/** The cells of each column. */
async function columnsOf(stream: BatchStream, kinds: KindsByName): Promise<Record<string, unknown[]>> {
  const names = stream.schema.fields.map(({ name }) => name);
  const found: Record<string, unknown[]> = Object.fromEntries(names.map((name) => [name, []]));
  for await (const { data } of stream)
    names.forEach((name, i) => {
      for (const cell of cellsOf(data.children[i])) found[name].push(plainCell(cell, kinds[name]));
    });
  return found;
}

async function duckColumns({ columns, query }: RandomPlan): Promise<Record<string, unknown[]>> {
  const names = Object.keys(columns);
  const list = names.map((name) => exactly(columns[name], `"${name}"`));
  const rows = await duckRows(`SELECT ${list.join(', ')} FROM (${query}) ORDER BY "${ORDER}"`);
  return Object.fromEntries(
    names.map((name, i) => [name, rows.map((row) => plainCell(row[i], columns[name]))]),
  );
}

async function attempt<T>(run: () => Promise<T>): Promise<T | string> {
  try {
    return await run();
  } catch (error) {
    return (error as Error).message;
  }
}

/** The first cell that differs, in words. */
function difference(rows: unknown, wanted: unknown): string {
  if (typeof rows !== 'object' || rows === null || typeof wanted !== 'object' || wanted === null)
    return `${String(rows)}, not ${typeof wanted === 'object' ? 'rows' : String(wanted)}`;
  const [found, expected] = [rows, wanted] as Record<string, unknown[]>[];
  if (!isDeepStrictEqual(Object.keys(found).sort(), Object.keys(expected).sort()))
    return `columns ${Object.keys(found).join()}, not ${Object.keys(expected).join()}`;
  const name = Object.keys(found).find((key) => !isDeepStrictEqual(found[key], expected[key])) ?? '';
  const [own, other] = [found[name], expected[name]];
  const at = own.findIndex((cell, i) => !Object.is(cell, other[i]));
  return `${name}[${at}]: ${String(own[at])}, not ${String(other[at])}; ${own.length} and ${other.length} rows`;
}

it(`${plans} random plans`, { timeout: 3_600_000 }, async () => {
  const made = new RandomPlans(random);
  let [compared, refused] = [0, 0];
  const failures: string[] = [];
  for (let n = 0; n < plans; n++) {
    const { plan: table, open } = sources[n % sources.length];
    const plan = made.draw(table, 1 + (n % 6));
    const expected = await attempt(() => duckColumns(plan));
    // Numbers out of range are errors in both engines, for rows that either of them may remove first.
    if (typeof expected === 'string') {
      expect(`${plan.text}: ${expected}`).toMatch(/Out of Range|Overflow|Conversion Error/i);
      refused++;
      continue;
    }
    const [first] = Object.values(expected);
    const session = sessions[n % sessions.length];
    const unoptimized = plan.make(open(session)).plan;
    const found: Record<string, unknown> = {
      unoptimized: await attempt(async () =>
        columnsOf(await executePlan(unoptimized, session.context()), plan.columns),
      ),
      count: await attempt(() => plan.make(open(session)).count()),
    };
    for (const own of [sessions[0], sessions[1 + (n % (sessions.length - 1))], inFiles])
      found[own === inFiles ? 'in files' : `${own.workers} threads`] = await attempt(async () =>
        columnsOf(await plan.make(open(own)).stream(), plan.columns),
      );
    for (const [way, rows] of Object.entries(found)) {
      const wanted = way === 'count' ? first.length : expected;
      if (!isDeepStrictEqual(rows, wanted))
        failures.push(`${n} ${way}: ${plan.text}\n${difference(rows, wanted)}`);
    }
    compared++;
  }
  expect(failures).toEqual([]);
  expect(compared + refused).toBe(plans);
  expect(refused).toBeLessThan(plans / 10);
});
