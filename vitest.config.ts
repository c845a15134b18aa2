import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { prepareSwiftShader } from './test/support/gpu/swiftshader.ts';

// The tests' own processes start with this environment; tests that need a GPU say why where there is none.
process.env.FACTORFLOW_TEST_NO_GPU = prepareSwiftShader(process.env) ?? '';

// Tests see no measurements of this machine, neither new nor stored ones.
process.env.FACTORFLOW_CACHE_DIR = resolve(import.meta.dirname, 'build/test-cache');

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/run-folder.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: 'build/test-report.json' }]],
  },
});
