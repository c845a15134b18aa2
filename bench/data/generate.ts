/**
 * Ratings per second of the synthetic generator: on one thread without files, and with Parquet files on all
 * threads.
 *
 *     node bench/data/generate.ts [preset = movielens20m] [scale = 0.25] [workers = one a core] [seed = 1]
 *
 * If other programs share the cores, compare ratings per second of processor time, not of wall time.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { generateRatings } from '../../synthetic/ratings/rating-generator.ts';
import { RatingStatistics } from '../../synthetic/ratings/rating-statistics.ts';
import { buildRatingTables } from '../../synthetic/ratings/rating-tables.ts';
import { generateDataset } from '../../synthetic/dataset/generate-dataset.ts';
import { describeMachine } from '../machine.ts';

/** Approximate ratings of the run without files. */
const SAMPLE = 5_000_000;
const RUNS = 3;

const [name = 'movielens20m', ...numbers] = process.argv.slice(2);
const [scale = 0.25, workers = availableParallelism(), seed = 1] = numbers.map(Number);
const preset = scalePreset(findPreset(name), scale);
const rows = preset.train + preset.test;

console.log(describeMachine());
console.log(`${preset.name} x ${scale}: ${preset.users} users, ${preset.items} items, ${rows} ratings`);

const started = performance.now();
const tables = buildRatingTables(preset, seed);
console.log(`tables    ${((performance.now() - started) / 1000).toFixed(2)} s`);

const sample = { first: 0, end: Math.max(1, Math.round(preset.users * Math.min(1, SAMPLE / rows))) };
for (let run = 0; run < RUNS; run++) {
  const statistics = new RatingStatistics(preset);
  await measure('1 thread, no files', () => {
    for (const _ of generateRatings(tables, { statistics, users: sample })) continue;
    return statistics.train + statistics.test;
  });
}

const directory = await mkdtemp(join(tmpdir(), 'factorflow-generate-'));
try {
  const { description, files } = await measure(`${workers} workers, files`, async () => {
    const { description, files } = await generateDataset({
      preset: preset.name,
      scale,
      seed,
      workers,
      output: join(directory, 'data'),
    });
    return { description, files, rows };
  });
  const bytes = files.train.bytes + files.test.bytes;
  console.log(
    `${files.train.files + files.test.files} files, ${(bytes / 2 ** 20).toFixed(0)} MiB, ${(bytes / rows).toFixed(2)} bytes a rating; best RMSE ${description.bestTestRmse.toFixed(4)}`,
  );
  console.log(
    `users ${JSON.stringify(description.degrees.users)}\nitems ${JSON.stringify(description.degrees.items)}\nratings ${JSON.stringify(description.ratings)}`,
  );
} finally {
  await rm(directory, { recursive: true });
}
console.log(`peak memory ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MiB`);

/** `work` returns its number of ratings, directly or as `rows`. */
async function measure<Result extends number | { readonly rows: number }>(
  what: string,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const processorSeconds = (user + system) / 1e6;
  const count = typeof result === 'number' ? result : result.rows;
  const rate = (time: number) => `${(count / time / 1e6).toFixed(2)} M ratings/s`;
  console.log(
    `${what.padEnd(20)}${seconds.toFixed(2)} s = ${rate(seconds)}; processor ${processorSeconds.toFixed(2)} s = ${rate(processorSeconds)}`,
  );
  return result;
}
