/**
 * Bundles the command and the programs of its threads into dist/programs/, each from the modules that it imports and from apache-arrow: a process, and each of its threads, begins
 * in a third of the time when it has few files to find. The modules in dist/ stay as they are for programs that import the package.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const programs = ['cli/main', 'cli/worker/stdin-thread', 'api/devices/file-tasks', 'connectors/model/load-worker', 'cpu/worker', 'gpu/worker', 'gpu/probe/probe-watchdog', 'gpu/probe/webgpu-probe', 'synthetic/copies/copy-worker', 'synthetic/dataset/range-worker'];
const bundled = ['apache-arrow', 'flatbuffers', 'tslib'];

/** A module asks for its own address to find programs beside it: that of its place among the programs, whatever file its text is in. Texts that the build makes stay where they are. */
const addresses: Plugin = {
  name: 'addresses',
  resolveId: (id, importer) => {
    if (importer === undefined || !id.startsWith('.') || !importer.startsWith(dist)) return undefined;
    const path = posix.join(posix.dirname(importer), id);
    return path.includes('/generated/') ? { id: `generated:${path.slice(dist.length)}`, external: true } : undefined;
  },
  transform: (code, id) => (id.startsWith(dist) ? code.replaceAll('import.meta.url', `__ADDRESS_OF__(${JSON.stringify(id.slice(dist.length))})`) : undefined),
  renderChunk: (code, { fileName }) => {
    const up = '../'.repeat(fileName.split('/').length - 1);
    return code
      .replaceAll(/__ADDRESS_OF__\(["'`]([^"'`]+)["'`]\)/g, (_, file: string) => `new URL(${JSON.stringify(`./${up}${file}`)}, import.meta.url).href`)
      .replaceAll(/(["'`])generated:([^"'`]+)\1/g, (_, quote: string, file: string) => `${quote}./${up}../${file}${quote}`);
  },
};

const isInstalled = (id: string) => /^[@a-z]/.test(id) && !id.includes(':') && !bundled.some((name) => id === name || id.startsWith(`${name}/`)) && !programs.includes(id);
await rm(`${dist}programs`, { recursive: true, force: true });
const bundle = await rolldown({ input: Object.fromEntries(programs.map((name) => [name, `${dist}${name}.js`])), platform: 'node', external: isInstalled, plugins: [addresses], logLevel: 'silent' });
const { output } = await bundle.write({ dir: `${dist}programs`, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js', codeSplitting: { groups: [{ name: 'apache-arrow', test: /node_modules.(apache-arrow|flatbuffers|tslib)/ }] }, minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } } });
await bundle.close();
const licences = await Promise.all(bundled.map(async (name) => `${name}\n\n${await readFile(new URL(`../node_modules/${name}/${name === 'flatbuffers' ? 'LICENSE' : 'LICENSE.txt'}`, import.meta.url), 'utf8')}`));
await writeFile(`${dist}programs/LICENSES.txt`, [...licences, await readFile(new URL('../node_modules/apache-arrow/NOTICE.txt', import.meta.url), 'utf8')].join(`\n${'-'.repeat(80)}\n\n`));
const bytes = output.reduce((sum, file) => sum + ('code' in file ? file.code.length : 0), 0);
console.log(`dist/programs: ${programs.length} programs and ${output.length - programs.length} other files, ${Math.round(bytes / 1024)} KiB`);
