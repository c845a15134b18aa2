/** Replaces engine/threads/worker-file.ts in tests: threads start from their bundles, if there are any. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundlesOf, programs } from './programs.ts';

const bundles = bundlesOf(process.env.FACTORFLOW_TEST_RUN ?? '');
const root = new URL('../../../', import.meta.url);
const bundled = new Map(
  programs.map((name) => [new URL(`${name}.js`, root).href, pathToFileURL(join(bundles, `${name}.js`))]),
);

export function workerFile(built: URL): URL {
  return bundled.get(built.href) ?? new URL(built.href.replace(/js$/, 'ts'));
}
