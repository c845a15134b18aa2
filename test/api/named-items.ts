/** A small model and files of names, for the tests of items' names. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { ALS, type Model, Session } from '../../index.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

export const folder = mkdtempSync(join(tmpdir(), 'names-'));
export const rows = randomRatings(51, 40, 30, 600);
export let session: Session;
export let model: Model;

beforeAll(async () => {
  session = await Session.create({ workers: 1, device: 'cpu' });
  model = await new ALS({ rank: 2, maxIter: 2, seed: 2 }).fit(session.from(ratingBatches(rows)));
});

afterAll(async () => {
  await session.close();
  rmSync(folder, { recursive: true });
});

export function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The names of a file, and the notes that reading gave. */
export async function read(path: string, options: Parameters<Session['readItemNames']>[1] = {}) {
  const notes: string[] = [];
  const names = await session.readItemNames(path, {
    ...options,
    onEvent: (event) => (event.type === 'note' ? notes.push(event.text) : 0),
  });
  return { names, notes };
}
