/**
 * A shop's nightly job: events (CSV) and products with UUIDs and decimal prices (Parquet) become weights that
 * halve every 30 days, a model, and lists with titles and prices. (DuckDB makes the shop's two files.)
 *
 *   npm run build && npx node examples/15-shop.ts
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { ALS, col, functions, lit, max, type RowOf, Session, sum, when } from 'factorflow';

const folder = await mkdtemp(join(tmpdir(), 'factorflow-example-'));
const connection = await (await DuckDBInstance.create()).connect();
await connection.run(`
  CREATE TABLE products AS SELECT printf('5f0c1d2e-0000-4000-8000-%012d', i)::UUID AS id,
    concat(CASE WHEN i % 2 = 0 THEN 'tea' ELSE 'coffee' END, ' no. ', i) AS title,
    (4.95 + i * 0.25)::DECIMAL(9, 2) AS price, i <> 8 AS listed FROM range(60) t(i);
  COPY products TO '${folder}/products.parquet';
  COPY (SELECT concat('c', c) AS customer, id AS product, TIMESTAMP '2026-06-01' - INTERVAL (p) DAY AS at,
      CASE WHEN p % 2 = c % 2 THEN (CASE WHEN p % 3 = 0 THEN 'buy' ELSE 'cart' END) ELSE 'view' END AS kind
    FROM range(90) u(c), (SELECT *, row_number() OVER (ORDER BY id) - 1 AS p FROM products)
    WHERE (c * 7 + p * 3) % 5 < 3) TO '${folder}/events.csv'`);
connection.closeSync();

const types = { customer: 'utf8', product: 'utf8', at: 'timestamp', kind: 'utf8' } as const;
const columns = { user: 'customer', item: 'product', rating: 'weight' };
const now = Date.parse('2026-06-01') / 1000;
const session = await Session.create();

const products = session.read
  .parquet<{ id: string; title: string; price: number; listed: boolean }>(join(folder, 'products.parquet'))
  .filter(col('listed').and(col('price').lt(15)))
  .drop('listed');

// Each event's weight by its kind, halved for every 30 days of its age; their sum for each pair.
const days = lit(now)
  .minus(functions.unixSeconds(col('at')))
  .divide(86_400);
const weights = session.read
  .csv<RowOf<typeof types>>(join(folder, 'events.csv'), { types, columns })
  .join(products, { left: 'product', right: 'id' }, 'semi')
  .withColumns({ days, points: when(col('kind').eq('buy'), 5).when(col('kind').eq('cart'), 3).otherwise(1) })
  .withColumn('weight', col('points').times(functions.pow(0.5, col('days').divide(30))))
  .groupBy('customer', 'product')
  .agg(sum('weight').as('weight'), max<Date>('at').as('last'));
await weights.orderBy('customer', 'product').show(3);

const model = await new ALS({ rank: 8, implicitPrefs: true, seed: 1 }).fit(weights);
const lists = model
  .recommendForAllUsers(3, { exclude: weights })
  .join(products, { left: 'product', right: 'id' })
  .orderBy('customer', 'rank');
await lists.write.parquet(join(folder, 'lists'));
for (const { customer, rank, title, price } of await lists.limit(6).toArray())
  console.log(`${customer} ${rank}: ${title} for ${price}`);
await session.close();
await rm(folder, { recursive: true });
