/**
 * From CSVs of ratings and films to recommendations in folders by genre: positive ratings of active users are
 * found by groups and a join, lists are joined with titles, and the films that are recommended most are
 * sorted.
 *
 *   npm run build && npx node examples/10-group-join-sort.ts
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALS, col, count, Session } from 'factorflow';

const data = join(import.meta.dirname, 'data/movietweetings-100k');
const folder = await mkdtemp(join(tmpdir(), 'factorflow-example-'));
const session = await Session.create();

/** The films with the first of their genres, such as Crime of `Crime|Drama`. */
async function* films() {
  for (const { item, title, genre } of await session.read.parquet(join(data, 'titles.parquet')).toArray())
    yield { item, title, genre: typeof genre === 'string' ? genre.split('|')[0] : null };
}

// The two CSVs of this example: user, item, rating, timestamp; item, title, genre.
await session.read.parquet(join(data, 'ratings.parquet')).write.csv(join(folder, 'ratings.csv'));
await session.fromRows(films).write.csv(join(folder, 'movies.csv'));

const ratings = session.read.csv(join(folder, 'ratings.csv'));
const movies = session.read.csv(join(folder, 'movies.csv'));

// Positive ratings of users who have rated 20 films or more.
const active = ratings.groupBy('user').count().filter(col('count').ge(20));
const positives = ratings.filter(col('rating').ge(7)).join(active, 'user', 'semi');
console.log(`${await active.count()} active users, ${await positives.count()} positive ratings`);

const model = await new ALS({ rank: 16, implicitPrefs: true, seed: 1 }).fit(positives);
const lists = model.recommendForAllUsers(10, { exclude: positives }).join(movies, 'item');
await lists.write.partitionBy('genre').parquet(join(folder, 'lists'));
console.log((await readdir(join(folder, 'lists'))).slice(0, 3).join(' '));

const written = session.read.parquet(join(folder, 'lists'));
const most = written
  .groupBy('item', 'title', 'genre')
  .agg(count().as('users'))
  .orderBy(col('users').desc(), 'title')
  .limit(5);
for (const { title, genre, users } of await most.toArray())
  console.log(`${title}, ${genre}: for ${users} users`);

await session.close();
await rm(folder, { recursive: true });
