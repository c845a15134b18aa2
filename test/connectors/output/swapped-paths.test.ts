/**
 * A second process swaps an output for a link to another folder, between each check and its use: that folder
 * stays as it is.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FactorFlowError, Session } from '../../../index.ts';
import { ratingBatches, randomRatings } from '../../support/ratings.ts';

const folder = mkdtempSync(join(tmpdir(), 'swapped-paths-'));
const path = (name: string) => join(folder, name);
const rows = randomRatings(3, 40, 30, 400);
const batches = ratingBatches(rows);
let session: Session;

/** Swaps until it is ended. Each turn sends one letter, so that the test can wait for turns. */
const swapping = `
const fs = require('node:fs');
const [target, kept, other] = process.argv.slice(1);
const quietly = (work) => { try { work(); } catch {} };
const turn = () => {
  for (let i = 0; i < 50; i++) {
    quietly(() => fs.renameSync(target, kept));
    quietly(() => fs.symlinkSync(other, target));
    quietly(() => { if (fs.lstatSync(target).isSymbolicLink()) fs.unlinkSync(target); });
    quietly(() => fs.renameSync(kept, target));
    quietly(() => fs.rmSync(kept, { recursive: true }));
  }
  process.stdout.write('.');
  setImmediate(turn);
};
turn();`;

beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 1 });
  mkdirSync(path('other/below'), { recursive: true });
  writeFileSync(path('other/below/file'), 'of somebody else');
  writeFileSync(path('other/part-00000.parquet'), 'no Parquet');
});
afterAll(async () => {
  await session.close();
  rmSync(folder, { recursive: true, force: true });
});

it('no write of a data set reaches the folder of a link that takes its place', async () => {
  const write = () => session.from(batches).write.parquet(path('out'), { overwrite: true, rowsPerPart: 100 });
  await write();
  const other = spawn(process.execPath, ['-e', swapping, path('out'), path('kept'), path('other')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const told = { turns: 0 };
  other.stdout.on('data', (letters: Buffer) => (told.turns += letters.length));
  const ended = new Promise<void>((resolve) => void other.once('exit', () => resolve()));
  try {
    let writes = 0;
    while (writes++ < 8 || told.turns < 8)
      await write().catch((error: unknown) => expect(error).toBeInstanceOf(FactorFlowError));
  } finally {
    other.kill('SIGKILL');
    await ended;
  }
  expect(readdirSync(path('other')).sort()).toEqual(['below', 'part-00000.parquet']);
  expect(readdirSync(path('other/below'))).toEqual(['file']);
  expect([
    readFileSync(path('other/below/file'), 'utf8'),
    readFileSync(path('other/part-00000.parquet'), 'utf8'),
  ]).toEqual(['of somebody else', 'no Parquet']);
  rmSync(path('out'), { recursive: true, force: true });
  await write();
  expect(await session.read.parquet(path('out')).count()).toBe(rows.length);
});
