/**
 * Bundles the modules that threads of the CPU load, with Arrow, into few files: a thread finds and links some 180 modules in 60 to 80 ms, and a
 * bundle in 15, before it can work at all. Overwrites the compiled entries in dist/, and puts what they share into dist/threads/.
 */
import { rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { licences } from './bundle-licences.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const entries = ['cpu/worker', 'api/devices/file-tasks'];
/** Packages whose modules are many and small; others load as they are. */
const bundled = /^(apache-arrow|flatbuffers|tslib)(\/|$)/;

await rm(`${root}dist/threads`, { recursive: true, force: true });
const bundle = await rolldown({
  input: Object.fromEntries(entries.map((name) => [name, `${root}${name}.ts`])),
  platform: 'node',
  external: (id) => !/^[./]/.test(id) && !bundled.test(id),
  logLevel: 'silent',
});
const { output } = await bundle.write({ dir: `${root}dist`, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'threads/[name].js' });
await bundle.close();
const modules = output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
await writeFile(`${root}dist/threads/LICENSES.txt`, await licences(modules));
console.log(`dist/threads: ${modules.length} modules in ${output.length} files`);
