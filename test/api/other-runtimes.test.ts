/** The built package in Deno and Bun, where they are installed: a model is trained, saved and used. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, Session } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';

interface Result {
  readonly loss: number;
  readonly items: readonly number[];
  readonly rows: number;
}

const runtimes = [
  { name: 'deno', flags: ['run', '-A'], bits: true },
  { name: 'bun', flags: [], bits: false },
].map((runtime) => ({ ...runtime, found: spawnSync(runtime.name, ['--version']).status === 0 }));
for (const { name, found } of runtimes)
  if (!found) console.log(`not tested: the package in ${name}, which is not in the PATH`);

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-runtimes-'));
const triples = randomRatings(41, 60, 50, 1200);
const visitor = triples.slice(0, 4).map(({ item, rating }) => ({ item, rating }));
const PROGRAM = `import { readFileSync } from 'node:fs';
import { ALS, Session } from 'factorflow';
const { triples, visitor } = JSON.parse(readFileSync('ratings.json', 'utf8'));
const session = await Session.create({ device: 'cpu', workers: 2 });
const model = await new ALS({ rank: 4, maxIter: 3, seed: 1 }).fit(session.fromRows(triples));
await model.save('model', { overwrite: true });
const rows = await session.read.parquet('model/itemFactors').count();
const { items } = await model.recommend({ ratings: visitor }, 5);
const { loss } = model.training.iterations.at(-1);
console.log(JSON.stringify({ loss, rows, items: items.map(({ item }) => item) }));
await session.close();
`;

describe.each(runtimes)('in $name', ({ name, flags, bits, found }) => {
  let expected: Result;
  beforeAll(async () => {
    if (!found) return;
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    const linked = join(folder, 'node_modules/factorflow');
    rmSync(linked, { force: true });
    symlinkSync(root, linked);
    writeFileSync(join(folder, 'ratings.json'), JSON.stringify({ triples, visitor }));
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    writeFileSync(join(folder, 'program.mjs'), PROGRAM);
    const session = await Session.create({ device: 'cpu', workers: 2 });
    const model = await new ALS({ rank: 4, maxIter: 3, seed: 1 }).fit(session.fromRows(triples));
    const { items } = await model.recommend({ ratings: visitor }, 5);
    const loss = model.training!.iterations.at(-1)!.loss!;
    expected = { loss, rows: model.itemCount, items: items.map(({ item }) => Number(item)) };
    await session.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const run = (...args: string[]) => {
    const { stdout, stderr, status } = spawnSync(name, [...flags, ...args], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(status, stderr).toBe(0);
    return stdout;
  };

  it.skipIf(!found)('trains, saves, reads and recommends as Node does', () => {
    const result = JSON.parse(run('program.mjs')) as Result;
    expect([result.rows, result.items]).toEqual([expected.rows, expected.items]);
    if (bits) expect(result.loss).toBe(expected.loss);
    else expect(result.loss / expected.loss).toBeCloseTo(1, 5);
    const command = join(root, 'dist/programs/cli/main.js');
    expect(run(command, 'recommend', 'model', '--users', `${triples[0].user}`, '-n', '2')).toContain('item');
  });
});
