/**
 * Train on a table of Postgres through a cursor, and write recommendations back. Only a page of rows is in
 * memory at a time. (It needs pg, pg-cursor and a server: DATABASE_URL=postgres://user@host/database.)
 *
 *   npm run build && npx node examples/14-postgres-cursor.ts
 */
import { ALS, Session } from 'factorflow';
import { Client } from 'pg';
import Cursor from 'pg-cursor';

const client = new Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await client.query(`
  CREATE TEMPORARY TABLE ratings AS
  SELECT u AS user_id, 'song-' || i AS song, CASE WHEN i % 2 = u % 2 THEN 5.0 ELSE 2.0 END AS stars
  FROM generate_series(0, 79) u, generate_series(0, 29) i WHERE (u + i) % 3 > 0`);

/** Opens the cursor anew for each pass over the rows, and closes it also if the pass ends early. */
async function* rowsOf(query: string, page = 1000) {
  const cursor = client.query(new Cursor<Record<string, unknown>>(query));
  try {
    for (let rows = await cursor.read(page); rows.length > 0; rows = await cursor.read(page)) yield rows;
  } finally {
    await cursor.close();
  }
}

const session = await Session.create();
// Postgres sends numeric columns as text: the query gives float4.
const ratings = session.fromRows(() => rowsOf('SELECT user_id, song, stars::float4 FROM ratings'), {
  columns: { user: 'user_id', item: 'song', rating: 'stars' },
});
const model = await new ALS({ rank: 4, seed: 1 }).fit(ratings);

await client.query(
  'CREATE TEMPORARY TABLE recommendations (user_id int, rank int, song text, prediction real)',
);
for await (const batch of model.recommendForAllUsers(3, { exclude: ratings }))
  await client.query(
    'INSERT INTO recommendations SELECT * FROM json_populate_recordset(NULL::recommendations, $1)',
    [JSON.stringify(batch.toArray())],
  );
const { rows } = await client.query<{ song: string; prediction: number }>(
  'SELECT song, prediction FROM recommendations WHERE user_id = 7 ORDER BY rank',
);
for (const { song, prediction } of rows) console.log(song, prediction.toFixed(1));
await session.close();
await client.end();
