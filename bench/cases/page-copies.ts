import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { col, Session } from 'factorflow';
import { openModel } from 'factorflow/browser';
import { type Case, mean } from '../harness.ts';

const USERS = 500;
const root = join(import.meta.dirname, '../..');

const pageCopies: Case = {
  about:
    'The part of the 10 best films of users that copies of a model for pages keep: the model of the ' +
    'example page, copied with 8 and with 16 bits a feature. Trains for seconds.',
  columns: { kept: '%', size: 'MB' },
  rounds: 1,
  async *rows({ scratch }) {
    const run = (program: string, ...args: string[]) =>
      execFileSync(process.execPath, [join(root, 'examples/browser', program), ...args], { cwd: root });
    run('make-page.ts', join(scratch, 'page'));
    run('small-items.ts', join(scratch, 'page/model'), join(scratch, '8'));
    run('small-items.ts', join(scratch, 'page/model'), join(scratch, '16'), '--float16');
    const server = await serveFiles(scratch);
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const visitors = await findVisitors();
    const best = await listsOf(`${address}/page/model`, visitors);
    for (const bits of ['8', '16'])
      yield {
        name: `${bits} bits`,
        engines: {
          page: async () => {
            const lists = await listsOf(`${address}/${bits}`, visitors);
            const kept = lists.map((list, at) => [...list].filter((item) => best[at].has(item)).length);
            const { size } = statSync(join(scratch, bits, 'itemFactors/part-00000.parquet'));
            return { kept: 10 * mean(kept), size: size / 1e6 };
          },
        },
      };
    server.closeAllConnections();
    server.close();
  },
};
export default pageCopies;

/** Sends whole files; a page reads them once. */
async function serveFiles(folder: string) {
  const server = createServer(({ url }, response) => {
    const file = join(folder, new URL(url ?? '/', 'http://host').pathname);
    const found = statSync(file, { throwIfNoEntry: false })?.isFile() === true;
    response.writeHead(found ? 200 : 404).end(found ? readFileSync(file) : '');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

/** Films that users of the examples' data have liked. */
async function findVisitors() {
  await using session = await Session.create({ device: 'cpu', workers: 1 });
  const file = join(root, 'examples/data/movietweetings-100k/ratings.parquet');
  const liked = await session.read.parquet(file).filter(col('rating').ge(7)).toArray();
  return [...Map.groupBy(liked, ({ user }) => user).values()]
    .filter(({ length }) => length >= 3)
    .slice(0, USERS)
    .map((rows) => rows.map(({ item }) => ({ item: Number(item), rating: 10 })));
}

async function listsOf(address: string, visitors: Awaited<ReturnType<typeof findVisitors>>) {
  const page = await openModel(address);
  const lists: Set<unknown>[] = [];
  for (const ratings of visitors) {
    const { items } = await page.recommend({ ratings }, 10);
    lists.push(new Set(items.map(({ item }) => item)));
  }
  await page.close();
  return lists;
}
