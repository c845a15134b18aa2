/**
 * Random expressions over random rows equal DuckDB's, if docs/expressions.md says that they do; the others
 * are written in DuckDB's equivalent. FACTORFLOW_EXPRESSIONS sets the number of expressions, FACTORFLOW_SEED
 * another draw.
 */
import { makeData, TimestampMicrosecond } from 'apache-arrow';
import { expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { isDeep } from '../../support/deep.ts';
import { batchOf, evaluated, selected } from './evaluated.ts';
import { kinds, RandomExpressions } from './random-expressions.ts';
import {
  batchOfCells,
  drawCells,
  duckTable,
  exactly,
  plainCell,
  randomColumns,
  ZONE,
} from './random-rows.ts';

const expressions = Number(process.env.FACTORFLOW_EXPRESSIONS ?? (isDeep ? 400 : 150));
const rows = 60;
const seed = new CounterRandom(Number(process.env.FACTORFLOW_SEED ?? 1));
let draws = 0;
const random = () => seed.uniform(draws++);

const columns = randomColumns(random);
const cells = drawCells(columns, rows, () => random() < 0.15);
const batch = batchOfCells(columns, cells);

it(`${expressions} random expressions over ${rows} rows`, { timeout: 600_000 }, async () => {
  const duck = await duckdb();
  await duck.run(`SET TimeZone = '${ZONE}'`);
  for (const statement of duckTable('random_rows', columns, cells, 'row')) await duck.run(statement);
  const source = new RandomExpressions(random);
  let [compared, refused] = [0, 0];
  for (let n = 0; n < expressions; n++) {
    const kind = kinds[n % kinds.length];
    const [own, other] = source.draw(kind, 1 + (n % 4));
    const query = `SELECT ${exactly(kind, other)} FROM random_rows ORDER BY row`;
    const answer = await duckRows(query).catch((error: Error) => error);
    // Decimals of too many digits, which either engine may find in rows that it need not compute.
    if (answer instanceof Error) {
      expect(`${answer.message}: ${query}`).toMatch(/^(Out of Range|Conversion) Error.*DECIMAL/);
      refused++;
      continue;
    }
    const expected = answer.map(([cell]) => plainCell(cell, kind));
    const cut = n % rows;
    const got = [batch.slice(0, cut), batch.slice(cut)]
      .flatMap((part) => evaluated(own, part))
      .map((cell) => plainCell(cell, kind));
    expect({ own, other, got }).toEqual({ own, other, got: expected });
    compared += expected.length;
    if (kind === 'bool') {
      const chosen = expected.flatMap((cell, row) => (cell === true ? [row] : []));
      expect({ own, chosen: selected(own, batch) }).toEqual({ own, chosen });
    }
  }
  expect(compared).toBe((expressions - refused) * rows);
  expect(refused).toBeLessThan(expressions / 10);
});

// Places whose clocks change at midnight, by half an hour, or by a day; texts are without the offset, since
// DuckDB takes the later one of two equal hours.
const zones = [
  'America/Los_Angeles',
  'America/Havana',
  'America/Sao_Paulo',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
];

it('times of zones', { timeout: 600_000 }, async () => {
  const duck = await duckdb();
  const local = (text: string) => `cast(${text} as text)`;
  for (const zone of isDeep ? zones : zones.slice(1, 3)) {
    // 1920 to 2024, half of them near a change of clocks of the last years or at its hours.
    const times = Array.from({ length: isDeep ? 5000 : 300 }, (_, i) =>
      i % 2 === 0
        ? Math.floor((random() * 104 - 50) * 31_557_600)
        : 1_667_700_000 + Math.floor(random() * 200) * 1800,
    );
    const x = makeData({
      type: new TimestampMicrosecond(zone),
      length: times.length,
      data: BigInt64Array.from(times, (time) => BigInt(time) * 1_000_000n),
    });
    await duck.run(`set TimeZone = '${zone}'`);
    const list = times.join();
    for (const unit of ['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute']) {
      // DuckDB finds the month's start first, and keeps its hour if that month has no midnight.
      const ofMonths = unit === 'quarter' || unit === 'year';
      const truncation = `date_trunc('${unit}', x)`;
      const made = ofMonths ? `cast(${truncation} as date)` : truncation;
      const moved = unit === 'minute' ? 'cast(x as date)' : `(x + interval '3 ${unit}s')`;
      const query = `select ${local(made)}, ${local(moved)} from (select to_timestamp(unnest([${list}])) as x)`;
      const got = [made, moved].map((text) => evaluated(local(text), batchOf({ x })));
      const wanted = await duckRows(query);
      for (let k = 0; k < 2; k++)
        expect({ zone, unit, rows: got[k].map(withoutOffset) }).toEqual({
          zone,
          unit,
          rows: wanted.map((row) => withoutOffset(row[k])),
        });
      const truncated = evaluated(`unix_seconds(${truncation})`, batchOf({ x }));
      expect(truncated.filter((time, i) => Number(time) > times[i])).toEqual([]);
    }
  }
  await duck.run("set TimeZone = 'UTC'");
});

const withoutOffset = (text: unknown) => String(text).replace(/(\d\d:\d\d:\d\d)[+-].*$/, '$1');
