/**
 * Part of the 10 best films of users that copies of a model for pages keep: the model of the example page,
 * copied with 8 and with 16 bits a feature. Trains for seconds.
 *
 *   npm run build && npx node bench/serving/page-copies.ts
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { col, Session } from 'factorflow';
import { openModel, type PageModel } from 'factorflow/browser';

const USERS = 500;
const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-page-copies-'));
const run = (program: string, ...args: string[]) =>
  execFileSync(process.execPath, [join(root, 'examples/browser', program), ...args], { cwd: root });
run('make-page.ts', join(folder, 'page'));
const model = join(folder, 'page/model');
run('small-items.ts', model, join(folder, '8'));
run('small-items.ts', model, join(folder, '16'), '--float16');

// Sends whole files; a page reads them once.
const server = createServer(({ url }, response) => {
  const file = join(folder, new URL(url ?? '/', 'http://host').pathname);
  const found = statSync(file, { throwIfNoEntry: false })?.isFile() === true;
  response.writeHead(found ? 200 : 404).end(found ? readFileSync(file) : '');
});
await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const session = await Session.create({ device: 'cpu', workers: 1 });
const file = join(root, 'examples/data/movietweetings-100k/ratings.parquet');
const liked = await session.read.parquet(file).filter(col('rating').ge(7)).toArray();
await session.close();
const visitors = [...Map.groupBy(liked, ({ user }) => user).values()]
  .filter(({ length }) => length >= 3)
  .slice(0, USERS)
  .map((rows) => rows.map(({ item }) => ({ item: Number(item), rating: 10 })));

async function listsOf(path: string): Promise<Set<unknown>[]> {
  const page: PageModel = await openModel(`${address}/${path}`);
  const lists: Set<unknown>[] = [];
  for (const ratings of visitors) {
    const { items } = await page.recommend({ ratings }, 10);
    lists.push(new Set(items.map(({ item }) => item)));
  }
  await page.close();
  return lists;
}

const best = await listsOf('page/model');
for (const bits of ['8', '16']) {
  const kept = (await listsOf(bits)).map((list, at) => [...list].filter((item) => best[at].has(item)).length);
  const part = kept.reduce((sum, count) => sum + count, 0) / (10 * visitors.length);
  const { size } = statSync(join(folder, bits, 'itemFactors/part-00000.parquet'));
  console.log(
    `${bits} bits: ${(100 * part).toFixed(2)} % of the 10 best for ${visitors.length} users, ` +
      `${(size / 1e6).toFixed(2)} MB`,
  );
}
server.closeAllConnections();
server.close();
rmSync(folder, { recursive: true });
