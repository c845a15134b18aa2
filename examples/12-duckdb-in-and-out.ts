/**
 * Train on a query of DuckDB, and query the model in SQL: its folder is Parquet. (It needs @duckdb/node-api.)
 *
 *   npm run build && npx node examples/12-duckdb-in-and-out.ts
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { ALS, Session } from 'factorflow';

const data = join(import.meta.dirname, 'data/movietweetings-100k');
const folder = await mkdtemp(join(tmpdir(), 'factorflow-example-'));
const connection = await (await DuckDBInstance.create(join(folder, 'films.duckdb'))).connect();
await connection.run(`
  CREATE TABLE ratings AS FROM '${data}/ratings.parquet';
  CREATE TABLE movies AS FROM '${data}/titles.parquet'`);

// The query is sent again for each pass over the ratings. Its rows arrive in pages.
const query = `
  SELECT user, item, rating FROM ratings
  WHERE user IN (SELECT user FROM ratings GROUP BY user HAVING count(*) >= 5)`;
const session = await Session.create();
const ratings = session.fromRows(async function* () {
  yield* (await connection.stream(query)).yieldRowObjectJs();
});
const model = await new ALS({ rank: 16, seed: 1 }).fit(ratings);
await model.save(join(folder, 'model'));
console.log(`${model.userCount} users, ${model.itemCount} films`);

// The films nearest to one, by the cosine of their 16 factors, after which a film's features have its bias.
const nearest = await connection.runAndReadAll(`
  WITH factors AS (
    SELECT id, features[:16] AS vector FROM '${folder}/model/itemFactors/*.parquet'
    WHERE id IN (SELECT item FROM ratings GROUP BY item HAVING count(*) >= 100)),
  chosen AS (SELECT * FROM factors JOIN movies ON id = item WHERE title LIKE 'The Hobbit: An Unexpected%')
  SELECT title FROM factors JOIN movies ON id = item
  WHERE id NOT IN (SELECT id FROM chosen)
  ORDER BY list_cosine_similarity(vector, (SELECT vector FROM chosen)) DESC LIMIT 3`);
for (const { title } of nearest.getRowObjectsJson()) console.log(title);

connection.closeSync();
await session.close();
await rm(folder, { recursive: true });
