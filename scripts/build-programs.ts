/**
 * Bundles the command, the programs of its threads and the library into dist/programs/: a process, and each
 * of its threads, starts in a third of the time if it has to find few files. Small packages are bundled too;
 * into the library only those that users do not install, since its batches must be instances of the user's own
 * apache-arrow.
 */
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import { licencesOf } from './bundle-page.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = `${root}dist/`;

/** The modules that a program imports first. */
async function importsOf(program: string): Promise<string[]> {
  const code = await readFile(`${dist}${program}.js`, 'utf8');
  return [...code.matchAll(/from '(\.[^']+)\.js'/g)].map(([, path]) =>
    posix.join(posix.dirname(program), path),
  );
}

interface Bundle {
  readonly programs: readonly string[];
  /**
   * Modules to put into one file with all their imports, since they are loaded together; shared modules are
   * in the first file. Must not contain programs: importing the file would run them.
   */
  readonly files: Readonly<Record<string, readonly string[]>>;
  /** Packages that users install are not bundled, and the code stays readable. */
  readonly library?: boolean;
}

/** Threads have their own bundles: the files that the command loads contain more than threads need. */
const bundles: readonly Bundle[] = [
  {
    programs: ['cli/main'],
    files: {
      // This file has no imports: a Node that is too old must be able to load it.
      'node-version': ['api/node-version'],
      'quick-answer': ['cli/quick-answer', 'cli/prepare-process'],
      begin: [
        'cli/run-cli',
        'cli/commands/train',
        'cli/progress/open-progress',
        'cli/progress/lines',
        'cli/output/check-collisions',
      ],
      // A GPU starts to open before the rest is loaded.
      devices: ['api/devices/open-devices'],
      train: [
        'cli/sessions/run-training',
        'api/training/als',
        'api/session',
        'operators/ratings/rows/select-ratings',
        'connectors/model/model-store',
        'connectors/parquet/parquet-source',
        'connectors/parquet/parquet-wasm/parquet-wasm-backend',
      ],
    },
  },
  {
    programs: [
      'cpu/worker',
      'api/devices/file-tasks',
      'connectors/model/load-worker',
      'synthetic/dataset/part-worker',
    ],
    files: {
      tasks: await importsOf('cpu/worker'),
      ratings: [
        'api/devices/read-ratings-task',
        'api/devices/read-rows-task',
        'connectors/parquet/parquet-splits',
        'connectors/parquet/parquet-wasm/parquet-wasm-backend',
        'connectors/model/write-factors',
      ],
    },
  },
  // The host check has its own file: from the file's name it detects whether another bundler took it.
  { library: true, programs: ['index', 'arrow'], files: { 'require-host': ['api/require-host'] } },
  {
    programs: [
      'gpu/worker',
      'gpu/probe/probe-watchdog',
      'gpu/probe/webgpu-probe',
      'api/worker/stdin-thread',
      'api/stall-watcher',
    ],
    files: { open: await importsOf('gpu/worker'), gpu: ['gpu/open-in-thread'] },
  },
];
/** Packages that are bundled into every program, so that users need not install all their files. */
const alwaysBundled = ['liquidjs', 'pgsql-ast-parser', 'nearley', 'moo'];
const bundled = [
  ...alwaysBundled,
  'apache-arrow',
  'flatbuffers',
  'tslib',
  'hyparquet',
  'yargs',
  'yargs-parser',
  'cli-table3',
  'string-width',
  'strip-ansi',
  'ansi-regex',
  'is-fullwidth-code-point',
  'emoji-regex',
];

/**
 * A module uses its own address to find neighbouring programs. It gets the address of its place among the
 * programs, whichever file contains its code. Generated texts and copied files stay in their places; generated
 * lists of tasks are bundled as code.
 */
const addresses = (library: boolean): Plugin => ({
  name: 'addresses',
  resolveId: (id, importer) => {
    if (importer === undefined || !id.startsWith('.') || !importer.startsWith(dist)) return undefined;
    const path = posix.join(posix.dirname(importer), id);
    return path.includes('/generated/') && !path.endsWith('/generated/tasks.js')
      ? { id: `generated:${path.slice(dist.length)}`, external: true }
      : undefined;
  },
  transform: (code, id) => {
    if (!id.startsWith(dist) || (library && id === `${dist}api/require-host.js`)) return undefined;
    const file = id.slice(dist.length);
    // In one call: tools that copy a package's files without running it search for this form.
    const urls = code.replaceAll(
      /new URL\('(\.[^']+)', import\.meta\.url\)/g,
      (_, path: string) => `__URL_OF__(${JSON.stringify(posix.join(posix.dirname(file), path))})`,
    );
    return urls.replaceAll('import.meta.url', `__ADDRESS_OF__(${JSON.stringify(file)})`);
  },
  renderChunk: (code, { fileName }) => {
    const up = '../'.repeat(fileName.split('/').length - 1);
    return code
      .replaceAll(
        /__URL_OF__\(["'`]([^"'`]+)["'`]\)/g,
        (_, file: string) =>
          `new URL(${JSON.stringify(`./${up}${file.includes('/generated/') ? '../' : ''}${file}`)}, import.meta.url)`,
      )
      .replaceAll(
        /__ADDRESS_OF__\(["'`]([^"'`]+)["'`]\)/g,
        (_, file: string) => `new URL(${JSON.stringify(`./${up}${file}`)}, import.meta.url).href`,
      )
      .replaceAll(
        /(["'`])generated:([^"'`]+)\1/g,
        (_, quote: string, file: string) => `${quote}./${up}../${file}${quote}`,
      );
  },
});

let hasYargsPlatform = false;

/** yargs without the parts that make it slow to load: yargs-platform.ts. */
const yargsPlatform: Plugin = {
  name: 'yargs-platform',
  resolveId: (id, importer = '') => {
    if (!id.endsWith('/platform-shims/esm.mjs') || !/node_modules.yargs.index/.test(importer))
      return undefined;
    hasYargsPlatform = true;
    return `${root}scripts/yargs-platform.ts`;
  },
};

const isPackage = (id: string) =>
  /^[@a-z]/.test(id) && !id.includes(':') && !bundles.some(({ programs }) => programs.includes(id));
const isOutside = (inside: readonly string[]) => (id: string) =>
  isPackage(id) && !inside.some((name) => id === name || id.startsWith(`${name}/`));

/** Gives the files' bytes. */
async function build({ programs, files, library = false }: Bundle): Promise<number[]> {
  const groups = Object.entries(files).map(([name, modules]) => ({
    name,
    test: (id: string) => modules.some((module) => id === `${dist}${module}.js`),
  }));
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((name) => [name, `${dist}${name}.js`])),
    platform: 'node',
    external: isOutside(library ? alwaysBundled : bundled),
    plugins: [addresses(library), yargsPlatform],
    logLevel: 'silent',
  });
  const { output } = await bundle.write({
    dir: `${dist}programs`,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: {
      groups: [{ name: 'apache-arrow', test: /node_modules.(apache-arrow|flatbuffers|tslib)/ }, ...groups],
    },
    minify: {
      compress: !library && { keepNames: { function: true, class: true } },
      mangle: false,
      codegen: { removeWhitespace: !library },
    },
  });
  await bundle.close();
  return output.map((file) => ('code' in file ? file.code.length : 0));
}

await rm(`${dist}programs`, { recursive: true, force: true });
const sizes: number[] = [];
for (const bundle of bundles) sizes.push(...(await build(bundle)));
// Threads require this file: a bundle is an ES module.
const required = 'engine/threads/import-worker.cjs';
await cp(`${dist}${required}`, `${dist}programs/${required}`);
if (!hasYargsPlatform)
  throw new Error('yargs was bundled with its own platform: yargs-platform.ts is not used');
await writeFile(`${dist}programs/LICENSES.txt`, await licencesOf([...bundled, 'parquet-wasm']));
const programs = bundles.flatMap((bundle) => bundle.programs);
console.log(
  `dist/programs: ${programs.length} programs and ${sizes.length - programs.length} other files, ${Math.round(sizes.reduce((sum, bytes) => sum + bytes) / 1024)} KiB`,
);
