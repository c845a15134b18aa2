/**
 * Ratings a second of the synthetic generator on one thread, without and with Parquet files.
 *
 *     node bench/generate.ts [scale = 0.25] [seed = 1]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPreset, scalePreset } from '../connectors/synthetic/preset.ts';
import { generateRatings } from '../connectors/synthetic/rating-generator.ts';
import { RatingStatistics } from '../connectors/synthetic/rating-statistics.ts';
import { buildRatingTables } from '../connectors/synthetic/rating-tables.ts';
import { generateDataset } from '../connectors/synthetic/write-dataset.ts';
import { describeMachine } from './machine.ts';

const RUNS = 3;
const scale = Number(process.argv[2] ?? 0.25);
const seed = Number(process.argv[3] ?? 1);
const preset = scalePreset(findPreset('movielens20m'), scale);
const rows = preset.train + preset.test;

console.log(describeMachine());
console.log(`${preset.name} x ${scale}: ${preset.users} users, ${preset.items} items, ${rows} ratings; best of ${RUNS}`);

let start = performance.now();
const tables = buildRatingTables(preset, seed);
console.log(`tables    ${((performance.now() - start) / 1000).toFixed(2)} s`);

let best = Infinity;
for (let run = 0; run < RUNS; run++) {
  const statistics = new RatingStatistics(preset);
  start = performance.now();
  for (const _ of generateRatings(tables, { statistics })) continue;
  best = Math.min(best, performance.now() - start);
}
report('ratings', best);

const directory = await mkdtemp(join(tmpdir(), 'factorflow-generate-'));
try {
  start = performance.now();
  await generateDataset({ preset: preset.name, scale, seed, output: join(directory, 'data') });
  report('+ files', performance.now() - start);
} finally {
  await rm(directory, { recursive: true });
}
console.log(`peak memory ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MiB`);

function report(what: string, milliseconds: number): void {
  console.log(`${what.padEnd(10)}${(milliseconds / 1000).toFixed(2)} s = ${(rows / milliseconds / 1000).toFixed(2)} M ratings/s`);
}
