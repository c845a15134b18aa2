/**
 * Random expressions over random rows equal DuckDB's, where docs/expressions.md says that they do; the others
 * are written in its words. FACTORFLOW_EXPRESSIONS sets the number of expressions, FACTORFLOW_SEED draws others.
 */
import { expect, it } from 'vitest';
import { timestampText, dateText, DAY } from '../../../engine/expressions/civil.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { ValueType } from '../../../engine/expressions/types.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { batchOf, type Cell, column, evaluated, selected } from './evaluated.ts';
import { type Kind, kinds, RandomExpressions } from './random-expressions.ts';

const expressions = Number(process.env.FACTORFLOW_EXPRESSIONS ?? 400);
const rows = 60;
const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
let draws = 0;
const random = () => seed.uniform(draws++);

const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
const whole = (bound: number) => Math.floor((random() * 2 - 1) * bound);
const fraction = () =>
  pick([0, -0.5, 0.1, 2.5, 1e10, Number.NaN, Infinity, -Infinity, whole(100) / 8, random()]);

const tables: Readonly<Record<string, readonly [ValueType, string, () => Cell]>> = {
  b: ['bool', 'BOOLEAN', () => random() < 0.5],
  c: ['bool', 'BOOLEAN', () => random() < 0.8],
  i: ['int32', 'INTEGER', () => whole(12)],
  j: ['int64', 'BIGINT', () => whole(1000)],
  f: ['float32', 'FLOAT', () => Math.fround(pick([fraction(), 3.3]))],
  g: ['float32', 'FLOAT', () => whole(40) / 8],
  d: ['float64', 'DOUBLE', fraction],
  e: ['float64', 'DOUBLE', () => whole(40) / 8],
  t: [
    'utf8',
    'VARCHAR',
    () => pick(['a', 'abc', '', 'Été', ' x ', '12', '-7', '😀z', 'A%', '99999999999999999999']),
  ],
  s: ['utf8', 'VARCHAR', () => pick(['a', 'b', '1', '', 'é'])],
  da: ['date', 'DATE', () => whole(30_000)],
  db: ['date', 'DATE', () => 19_782 + whole(3)],
  ts: ['timestamp', 'TIMESTAMP', () => BigInt(whole(30_000)) * BigInt(DAY) + BigInt(whole(DAY))],
  tt: ['timestamp', 'TIMESTAMP', () => BigInt(19_782 + whole(3)) * BigInt(DAY)],
  big: [
    'int64',
    'BIGINT',
    () => pick([2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 5n, BigInt(whole(2 ** 52)) * 1000n]),
  ],
  huge: ['uint64', 'UBIGINT', () => pick([2n ** 64n - 1n, 2n ** 53n + 1n, 2n ** 63n, 5n, 0n])],
};

const cells = Object.fromEntries(
  Object.entries(tables).map(([name, [, , draw]]) => [
    name,
    Array.from({ length: rows }, () => (random() < 0.15 ? null : draw())),
  ]),
);
const batch = batchOf(
  Object.fromEntries(Object.entries(tables).map(([name, [type]]) => [name, column(type, cells[name])])),
);

function sqlOf(cell: Cell, type: ValueType): string {
  if (cell === null) return 'NULL';
  if (type === 'date') return `DATE '${dateText(Number(cell))}'`;
  if (type === 'timestamp') {
    const days = Math.floor(Number(BigInt(cell) / 1000n) / (DAY / 1000));
    return `TIMESTAMP '${timestampText(days, Number(BigInt(cell) - BigInt(days) * BigInt(DAY)))}'`;
  }
  if (typeof cell === 'string') return `'${cell}'`;
  // In quotes: a decimal literal would be rounded on its way to FLOAT.
  return typeof cell === 'number' ? `'${cell}'` : String(cell);
}

/** DuckDB's value of a kind in a form that its JavaScript gives exactly. */
const exact: Readonly<Partial<Record<Kind, (text: string) => string>>> = {
  int: (text) => `(${text})::BIGINT`,
  date: (text) => `(${text})::DATE - DATE '1970-01-01'`,
  timestamp: (text) => `epoch_us((${text})::TIMESTAMP)`,
};

function plain(cell: unknown, kind: Kind): unknown {
  if (cell === null) return null;
  if (kind === 'int' || kind === 'date' || kind === 'timestamp') return BigInt(cell as bigint);
  // 0 and -0 are equal, and float32 travels as the float64 of the same value.
  return typeof cell === 'number' ? cell + 0 : cell;
}

it(`${expressions} random expressions over ${rows} rows`, { timeout: 600_000 }, async () => {
  const duck = await duckdb();
  const types = Object.entries(tables).map(([name, [, type]]) => `"${name}" ${type}`);
  await duck.run(`CREATE OR REPLACE TABLE random_rows (row INTEGER, ${types.join(', ')})`);
  const values = Array.from({ length: rows }, (_, row) => {
    const own = Object.entries(tables).map(([name, [type]]) => sqlOf(cells[name][row], type));
    return `(${row}, ${own.join(', ')})`;
  });
  await duck.run(`INSERT INTO random_rows VALUES ${values.join(', ')}`);
  const source = new RandomExpressions(random);
  let compared = 0;
  for (let n = 0; n < expressions; n++) {
    const kind = kinds[n % kinds.length];
    const [own, other] = source.draw(kind, 1 + (n % 4));
    const query = `SELECT ${exact[kind]?.(other) ?? other} FROM random_rows ORDER BY row`;
    const expected = (await duckRows(query).catch((error: Error) => [[`${error.message}: ${query}`]])).map(
      ([cell]) => plain(cell, kind),
    );
    const cut = n % rows;
    const got = [batch.slice(0, cut), batch.slice(cut)]
      .flatMap((part) => evaluated(own, part))
      .map((cell) => plain(cell, kind));
    expect({ own, other, got }).toEqual({ own, other, got: expected });
    compared += expected.length;
    if (kind === 'bool') {
      const chosen = expected.flatMap((cell, row) => (cell === true ? [row] : []));
      expect({ own, chosen: selected(own, batch) }).toEqual({ own, chosen });
    }
  }
  expect(compared).toBe(expressions * rows);
});
