/**
 * The results are plain Parquet: DuckDB joins recommendations with the ratings in SQL. (It needs
 * @duckdb/node-api.)
 *
 *   npm run build && npx node examples/05-query-with-duckdb.ts
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { ALS, Session } from 'factorflow';

const input = join(import.meta.dirname, 'data/movietweetings-100k/ratings.parquet');
const folder = await mkdtemp(join(tmpdir(), 'factorflow-example-'));

const session = await Session.create();
const ratings = session.read.parquet(input);
const model = await new ALS({ rank: 16, seed: 1 }).fit(ratings);
const { rows } = await model
  .recommendForAllUsers(100, { exclude: ratings })
  .write.parquet(join(folder, 'recommendations'));
console.log(`${rows} recommendations of ${model.itemCount} films for ${model.userCount} users`);

// Columns: user, rank (1 is the best), item, prediction. Ids have their type in the ratings. The model may
// rank a film high for a single good rating; the join leaves such films out, and the query takes the first
// three of the rest.
const connection = await (await DuckDBInstance.create()).connect();
const result = await connection.runAndReadAll(`
  WITH films AS (SELECT item, count(*) AS ratings, avg(rating) AS mean FROM '${input}' GROUP BY item HAVING count(*) >= 50),
  best AS (
    FROM '${folder}/recommendations/*.parquet' JOIN films USING (item)
    QUALIFY row_number() OVER (PARTITION BY user ORDER BY rank) <= 3)
  SELECT item, count(*) AS users, any_value(ratings) AS ratings, round(any_value(mean), 1) AS mean
  FROM best GROUP BY item ORDER BY users DESC, item LIMIT 5`);
for (const film of result.getRowObjectsJson())
  console.log(
    `film ${film.item}: for ${film.users} users; ${film.ratings} ratings with a mean of ${film.mean}`,
  );

connection.closeSync();
await rm(folder, { recursive: true });
await session.close();
