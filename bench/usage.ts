/** Loaded before a measured command (`node --import`): writes what its process used to the file BENCH_USAGE. */
import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const { BENCH_USAGE: file } = process.env;
if (isMainThread && file !== undefined)
  process.on('exit', () => writeFileSync(file, JSON.stringify(process.resourceUsage())));
