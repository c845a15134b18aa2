/** Feeds of ratings to the command worker. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { numberedRatings } from '../support/numbered-ratings.ts';
import { type Ended, ratingStream } from '../support/worker-parent.ts';

export const triples = numberedRatings(3000);
export const rows = triples.users.length;
export const stream = ratingStream(triples);
export const folder = mkdtempSync(join(tmpdir(), 'factorflow-worker-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
export const errorOf = ({ frames }: Ended) => frames.at(-1)?.header ?? {};
