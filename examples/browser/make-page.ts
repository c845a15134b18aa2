/**
 * A page that recommends films from the ones that a visitor picks. This program trains the model, and puts
 * all files of the page into one folder for any file server.
 *
 *   npm run build && npx node examples/browser/make-page.ts OUT && npx http-server OUT
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { ALS, col, count, Session } from 'factorflow';

const out = process.argv[2];
if (out === undefined) throw new Error('give the folder for the page');
const own = (file: string) => join(import.meta.dirname, file);
const data = own('../data/movietweetings-100k');

const session = await Session.create();
// Whoever rated a film 7 or more likes it.
const liked = session.read.parquet(join(data, 'ratings.parquet')).filter(col('rating').ge(7));
const als = new ALS({ implicitPrefs: true, rank: 32, alpha: 1, regParam: 0.1, maxIter: 10, seed: 1 });
const model = await als.fit(liked);
await model.save(join(out, 'model'), { overwrite: true });
// A page does not read the factors of users, so they are not published.
rmSync(join(out, 'model/userFactors'), { recursive: true });

// The films of the model, first those that most people like: the search finds them in this order.
const films = await liked
  .groupBy('item')
  .agg(count().as('people'))
  .join(session.read.parquet(join(data, 'titles.parquet')), 'item')
  .orderBy(col('people').desc(), 'item')
  .toArray();
writeFileSync(join(out, 'films.json'), JSON.stringify(films.map(({ item, title }) => [item, title])));
await session.close();

for (const file of ['index.html', 'page.js', 'page.css', 'offline.js'])
  copyFileSync(own(file), join(out, file));
mkdirSync(join(out, 'factorflow'), { recursive: true });
const library = fileURLToPath(import.meta.resolve('factorflow/browser'));
copyFileSync(library, join(out, 'factorflow/index.js'));
console.log(`${films.length} films; the page is ${join(out, 'index.html')}`);
