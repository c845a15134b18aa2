/**
 * Random aggregations of random tables give DuckDB's rows: in one step, and in parts. FACTORFLOW_SEED draws
 * others.
 */
import { expect, it } from 'vitest';
import type { Aggregation } from '../../../../operators/dataflow/aggregate/aggregate.ts';
import { duckdb, duckRows } from '../../../connectors/parquet/parquet-testing.ts';
import {
  batchOfCells,
  type ColumnKind,
  drawCells,
  duckTable,
  exactly,
  plainCell,
  type RandomColumns,
  randomColumns,
} from '../../../engine/expressions/random-rows.ts';
import { sampleSize } from '../../../support/deep.ts';
import { cellsByRow, cutRows, duckAggregate, inParts, nullable, onlyZero, whole } from './aggregating.ts';
import { drawnNumbers } from '../../../support/drawn-numbers.ts';

const random = drawnNumbers();
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
const ORDER = 'row number';

const drawn = randomColumns(random);
const columns: RandomColumns = {
  ...drawn,
  zero: { ...drawn.d, draw: () => pick([0, -0, 1, Number.NaN]) },
  // One value has half of the rows.
  skewed: { ...drawn.i, draw: () => (random() < 0.5 ? 7 : Math.floor(random() * 40)) },
  long: {
    ...drawn.t,
    draw: () => pick(['a long text of more than eight bytes', 'a long text of more', 'a long', 'é']),
  },
};
const names = Object.keys(columns);

/** Columns whose results DuckDB's JavaScript has as they are. */
const listed = ['b', 'i', 'd', 'e', 't', 's', 'long', 'zero', 'big'];
const finite = ['i', 'j', 'g', 'e', 'skewed', 'dm', 'dn'];
const summed = [...finite, 'd', 'f', 'zero'];
const calls: readonly (readonly [Aggregation['call'], readonly string[]])[] = [
  ['count', names],
  ['countDistinct', names],
  ['sum', [...summed, 'dw']],
  ['mean', [...summed, 'big', 'huge', 'dw']],
  ['stddev', [...finite, 'dw']],
  ['min', names],
  ['max', names],
  ['first', names],
  ['last', names],
  ['collectList', listed],
  ['collectSet', listed],
  ['median', [...summed, 'big', 'huge']],
  ['quantile', summed],
  ['minBy', names],
  ['maxBy', names],
];

interface Drawn {
  readonly aggregation: Aggregation;
  readonly sql: string;
  readonly kind: ColumnKind;
}

function drawAggregate(name: string): Drawn {
  const [call, from] = pick(calls);
  const column = pick(from);
  const value = { kind: 'column', name: column } as const;
  const counted = call === 'count' && random() < 0.3;
  const by = call === 'minBy' || call === 'maxBy' ? pick(names) : undefined;
  const p = call === 'quantile' ? pick([0, 1, 0.5, 0.1, 0.99, random()]) : undefined;
  const aggregation = {
    name,
    call,
    ...(!counted && { value }),
    ...(by !== undefined && { by: { kind: 'column', name: by } as const }),
    ...(p !== undefined && { p }),
  };
  const further = { ...(p !== undefined && { p }), ...(by !== undefined && { by }) };
  const own = counted ? undefined : column;
  return { aggregation, ...duckAggregate(call, own, columns[column].kind, ORDER, further) };
}

function expectClose(found: unknown, wanted: unknown, text: string): void {
  if (typeof found !== 'number' || typeof wanted !== 'number' || !Number.isFinite(found))
    expect(found, text).toEqual(wanted);
  else expect(Math.abs(found - wanted), text).toBeLessThan(1e-9 * Math.max(1, Math.abs(wanted), 1e6));
}

it('random aggregations are DuckDB’s', async () => {
  const connection = await duckdb();
  for (let table = 0; table < sampleSize(15); table++) {
    const rows = pick([0, 1, 30, 200, 400]);
    const share = pick([0, 0.2]);
    const cells = drawCells(columns, rows, () => random() < share);
    for (const statement of duckTable('grouped', columns, cells, ORDER)) await connection.run(statement);
    const batch = nullable(batchOfCells(columns, cells));
    const input = { schema: batch.schema, batches: cutRows(batch, random) };
    for (let plan = 0; plan < 5; plan++) {
      const keys = [...new Set(Array.from({ length: pick([0, 1, 1, 2, 3]) }, () => pick(names)))];
      const aggregates = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, i) =>
        drawAggregate(`x${i}`),
      );
      const aggregations = aggregates.map(({ aggregation }) => aggregation);
      const group = keys.length === 0 ? '' : `GROUP BY ${keys.map((key) => `"${key}"`).join()}`;
      const kinds = [...keys.map((key) => columns[key].kind), ...aggregates.map(({ kind }) => kind)];
      const ownKeys = keys.map(
        (key) => `first(${exactly(columns[key].kind, `"${key}"`)} ORDER BY "${ORDER}")`,
      );
      const list = [...ownKeys, ...aggregates.map(({ sql }) => sql)].join(', ');
      const query = `SELECT ${list} FROM grouped ${group} ORDER BY min("${ORDER}")`;
      const wanted = (await duckRows(query)).map((row) =>
        row.map((cell, i) => {
          const kind = kinds[i];
          return kind === 'list' ? (cell as unknown[]).map(onlyZero) : plainCell(cell, kind);
        }),
      );
      for (const result of [
        await whole(input, keys, aggregations),
        await inParts(input, { keys, aggregations }, random),
      ]) {
        const found = cellsByRow(result, kinds);
        expect(found.length, query).toBe(wanted.length);
        found.forEach((row, at) => row.forEach((cell, i) => expectClose(cell, wanted[at][i], query)));
      }
    }
  }
});
