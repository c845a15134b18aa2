/**
 * Random expressions over random rows equal DuckDB's, if docs/expressions.md says that they do; the others
 * are written in DuckDB's equivalent. FACTORFLOW_EXPRESSIONS sets the number of expressions, FACTORFLOW_SEED
 * another draw.
 */
import { expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { isDeep } from '../../support/deep.ts';
import { evaluated, selected } from './evaluated.ts';
import { kinds, RandomExpressions } from './random-expressions.ts';
import { batchOfCells, drawCells, duckTable, exactly, plainCell, randomColumns } from './random-rows.ts';

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
  for (const statement of duckTable('random_rows', columns, cells, 'row')) await duck.run(statement);
  const source = new RandomExpressions(random);
  let compared = 0;
  for (let n = 0; n < expressions; n++) {
    const kind = kinds[n % kinds.length];
    const [own, other] = source.draw(kind, 1 + (n % 4));
    const query = `SELECT ${exactly(kind, other)} FROM random_rows ORDER BY row`;
    const expected = (await duckRows(query).catch((error: Error) => [[`${error.message}: ${query}`]])).map(
      ([cell]) => plainCell(cell, kind),
    );
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
  expect(compared).toBe(expressions * rows);
});
