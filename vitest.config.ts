import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { prepareSwiftShader } from './test/support/gpu/swiftshader.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { deepFilesOf, ownProcess, sharedProcess, type TestFiles } from './test/support/processes.ts';

// The tests' own processes start with this environment; tests that need a GPU say why where there is none.
process.env.FACTORFLOW_TEST_NO_GPU = prepareSwiftShader(process.env) ?? '';

// Tests see no measurements of this machine, neither new nor stored ones.
process.env.FACTORFLOW_CACHE_DIR = resolve(import.meta.dirname, 'build/test-cache');

// Threads of the tests load TypeScript sources. Node keeps the texts without types here, so that each thread
// need not strip them again.
process.env.NODE_COMPILE_CACHE = resolve(import.meta.dirname, 'build/test-compiled');

// The deep run has only the files that take samples otherwise.
const filesIn = (mode: string, files: TestFiles): TestFiles =>
  mode === 'deep' ? { include: deepFilesOf(files) } : files;

export default defineConfig(({ mode }) => ({
  test: {
    // `npm run test:deep` takes all cases of the sets of which `npm test` takes samples: test/support/deep.ts.
    env: { FACTORFLOW_TEST_DEEP: `${mode === 'deep'}` },
    projects: [
      { extends: true, test: { name: 'own process', ...filesIn(mode, ownProcess) } },
      { extends: true, test: { name: 'shared process', ...filesIn(mode, sharedProcess), isolate: false } },
    ],
    globalSetup: ['test/support/run-folder.ts', 'test/support/threads/bundle-threads.ts'],
    alias: [
      {
        find: /.*\/threads\/worker-file\.ts$/,
        replacement: resolve(import.meta.dirname, 'test/support/threads/worker-file.ts'),
      },
    ],
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // By default Vitest would keep one of them free.
    maxWorkers: availableParallelism(),
    // No test depends on time: what hangs ends at last, and a slow machine has room.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    reporters: ['default', ['json', { outputFile: `build/${mode}-report.json` }]],
  },
}));
