/**
 * Test files that share processes, and files that each have an own process. A shared process loads the
 * sources once for all of its files, about 0.4 seconds of a processor per file.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');

/** Folders whose files share processes. */
const folders = [
  'api',
  'browser',
  'cli',
  'connectors',
  'cpu',
  'engine',
  'gpu',
  'operators',
  'project',
  'reproduce',
  'synthetic',
  'torture',
  'worker',
];

/** Files of these folders that need an own process. */
const exceptions = [
  // They change environment variables, timers or modules of their process, or measure its memory.
  'test/api/devices/driver-probe.test.ts',
  'test/api/reading/ratings-in-parts.test.ts',
  'test/api/rows/exchanges.test.ts',
  'test/api/served-lists.test.ts',
  'test/api/sgd-in-bands.test.ts',
  'test/cli/help.test.ts',
  'test/connectors/declared-sizes.test.ts',
  'test/connectors/files/failing-reads.test.ts',
  'test/connectors/fuzz.test.ts',
  'test/connectors/output/process-spaces.test.ts',
  'test/connectors/parquet/parquet-footer.test.ts',
  'test/gpu/cards.test.ts',
  'test/gpu/device.test.ts',
  'test/gpu/polls.test.ts',
  'test/operators/measured-memory.test.ts',
  // Helpers that register hooks, or have a folder or a session: a shared process would load them for its first
  // file only.
  'test/cli/report.test.ts',
  'test/cli/server/*.test.ts',
  'test/connectors/arrow/arrow-damage.test.ts',
  'test/connectors/arrow/arrow-ipc.test.ts',
  'test/connectors/http/bad-servers.test.ts',
  'test/connectors/http/http.test.ts',
  'test/connectors/http/lying-servers.test.ts',
  'test/connectors/lines/many-columns.test.ts',
  'test/connectors/model/model-store.test.ts',
  'test/connectors/model/refused-models.test.ts',
  'test/connectors/model/spark-models.test.ts',
  'test/connectors/ndjson/bad-ndjson.test.ts',
  'test/connectors/ndjson/ndjson.test.ts',
  'test/connectors/parquet/parquet-outputs.test.ts',
  'test/connectors/parquet/parquet-sink.test.ts',
  'test/gpu/als-grids.test.ts',
  'test/gpu/out-of-core.test.ts',
];

export const sharedProcess = {
  include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
  exclude: exceptions,
};

export const ownProcess = {
  include: ['test/*.test.ts', `test/!(${folders.join('|')})/**/*.test.ts`, ...exceptions],
};

export interface TestFiles {
  readonly include: string[];
  readonly exclude?: string[];
}

/** Paths of the files, relative to the root. */
export const filesOf = ({ include, exclude }: TestFiles): string[] =>
  globSync(include, { cwd: root, exclude });

/** The files that take samples in `npm test`: only these are in `npm run test:deep`. */
export const deepFilesOf = (files: TestFiles): string[] =>
  filesOf(files).filter((file) =>
    /\/support\/(deep|gpu\/run-checks)\.ts'/.test(readFileSync(join(root, file), 'utf8')),
  );
