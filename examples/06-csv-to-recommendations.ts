/**
 * Read a CSV, train, write recommendations as CSV. Text ids stay text, and columns keep their names.
 *
 *   npm run build && npx node examples/06-csv-to-recommendations.ts
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALS, Session } from 'factorflow';

const folder = await mkdtemp(join(tmpdir(), 'factorflow-example-'));

/**
 * An exported CSV: users have rated two songs of three, and like those whose number has the parity of their
 * own.
 */
const lines = ['listener,song,stars'];
for (let listener = 0; listener < 60; listener++) {
  for (let song = 0; song < 40; song++) {
    if ((listener + song) % 3 > 0)
      lines.push(`listener-${listener},"song, no. ${song}",${song % 2 === listener % 2 ? 5 : 2}`);
  }
}
await writeFile(join(folder, 'stars.csv'), `${lines.join('\n')}\n`);

const session = await Session.create();
const stars = session.read.csv(join(folder, 'stars.csv'));
console.log(String(await stars.schema()));

const als = new ALS({ rank: 4, seed: 1, userCol: 'listener', itemCol: 'song', ratingCol: 'stars' });
const model = await als.fit(stars);
await model.recommendForAllUsers(3, { exclude: stars }).write.csv(join(folder, 'recommendations.csv'));

console.log((await readFile(join(folder, 'recommendations.csv'), 'utf8')).split('\n').slice(0, 4).join('\n'));
await rm(folder, { recursive: true });
await session.close();
