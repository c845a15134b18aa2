/**
 * Train on the rows of a database, and recommend with titles. The cursor gives pages of plain objects, as
 * drivers do; a function that opens it anew lets training read the rows more than once.
 *
 *   npm run build && npx node examples/09-rows-and-titles.ts
 */
import { ALS, ItemNames, Session } from 'factorflow';

const songs = Array.from({ length: 30 }, (_, id) => ({ id, title: `Song no. ${id}` }));

/** 80 users who have rated most songs, and like those whose number has the parity of their own. */
async function* cursor() {
  for (let user = 0; user < 80; user++) {
    const rated = songs.filter(({ id }) => (user + id) % 3 > 0);
    const stars = (id: number) => (id % 2 === user % 2 ? 5 : 2);
    yield rated.map(({ id }) => ({ user_id: user, song_id: id, stars: stars(id), tags: ['live'] }));
  }
}

const session = await Session.create();
const columns = { user: 'user_id', item: 'song_id', rating: 'stars' };
const ratings = session.fromRows(() => cursor(), { columns });
const { train, test } = await ratings.leaveOut(2);
const model = await new ALS({ rank: 4, seed: 1 }).fit(train, { validation: test });

// From a file it is session.readItemNames('songs.csv', { model }).
const names = new ItemNames(songs.map(({ id, title }) => [id, title]));
const { items } = await model.recommend(7, 3, { names, exclude: await model.exclusions(ratings) });
for (const { item, name, score } of items) console.log(item, name, score.toFixed(2));
await session.close();
