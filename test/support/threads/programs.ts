import { resolve } from 'node:path';

/** Entry files of threads, relative to the root and without their extension. */
export const programs = [
  'cpu/worker',
  'api/devices/file-tasks',
  'connectors/model/load-worker',
  'gpu/worker',
  'synthetic/dataset/part-worker',
  'test/support/devices/given-handlers',
  'test/support/damage/failing-reader',
] as const;

/**
 * The folder of their bundles, which have the same paths. Each run of tests has its own: bundle-threads.ts
 * writes its number into the environment before the tests' processes start.
 */
export const bundlesOf = (run: string): string =>
  resolve(import.meta.dirname, '../../../build/test-threads', run);
