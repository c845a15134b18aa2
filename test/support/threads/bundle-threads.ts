/**
 * Programs of the threads, bundled from their sources before a run of tests: a thread that loads one file
 * starts in a fraction of the processor time of one that finds and strips hundreds of modules.
 */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { bundlesOf, programs } from './programs.ts';

const root = resolve(import.meta.dirname, '../../..');

export default async function setup(): Promise<() => void> {
  process.env.FACTORFLOW_TEST_RUN = `${process.pid}`;
  const bundles = bundlesOf(process.env.FACTORFLOW_TEST_RUN);
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((name) => [name, join(root, `${name}.ts`)])),
    platform: 'node',
    external: (id) => /^[@a-z]/.test(id) && !/^(apache-arrow|flatbuffers|tslib|hyparquet)(\/|$)/.test(id),
    plugins: [
      {
        // Tasks find NaN in memory that they must not read: devices/poison.ts.
        name: 'poison',
        resolveId: (id, importer = '') => {
          const kind = /(cpu\/worker|gpu\/open-in-thread)\.ts$/.exec(importer)?.[1].slice(0, 3);
          return kind && id === './registry.ts'
            ? join(root, `test/support/devices/poisoned-${kind}.ts`)
            : undefined;
        },
      },
      {
        // A module's own address stays the source's: files next to it are found from there.
        name: 'addresses',
        transform: (code, id) =>
          id.endsWith('.ts')
            ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
            : undefined,
      },
    ],
    logLevel: 'silent',
  });
  await bundle.write({
    dir: bundles,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  });
  await bundle.close();
  return () => rmSync(bundles, { recursive: true, force: true });
}
