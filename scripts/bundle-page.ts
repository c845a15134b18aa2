/** Bundles the compiled browser/ into modules for pages. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('../', import.meta.url));

/** The packages whose code the module contains. */
export const bundled = ['hyparquet', 'liquidjs'];

/** The name of the package that a module belongs to; undefined for a module of the project. */
function packageOf(id: string): string | undefined {
  const installed = id.split('node_modules/').at(-1) ?? '';
  const name = id.includes('node_modules/') ? installed : id;
  return /^(?:@[^/]+\/)?[a-z][^/:]*/.exec(name)?.[0];
}

/**
 * Bundles a program with everything that it imports: into `name`.js, and a module for each `import()`.
 * Throws if it imports a module of Node, or a package that pages do not need. Returns the modules' texts by
 * file name.
 */
export async function bundlePage(input: string, name: string): Promise<Readonly<Record<string, string>>> {
  const foreign = new Set<string>();
  const bundle = await rolldown({
    input: { [name]: input },
    cwd: root,
    platform: 'browser',
    external: (id) => {
      const name = id.startsWith('node:') ? id : packageOf(id);
      if (name === undefined || bundled.includes(name)) return false;
      foreign.add(name);
      return true;
    },
    logLevel: 'silent',
    // Modules that are loaded later import the code that they share with the first one from there.
    preserveEntrySignatures: 'allow-extension',
  });
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Errors are called by the names of their classes.
    minify: {
      compress: { keepNames: { function: false, class: true } },
      mangle: { keepNames: { function: false, class: true } },
    },
  });
  await bundle.close();
  if (foreign.size > 0) throw new Error(`${input} imports ${[...foreign].sort().join(', ')}`);
  return Object.fromEntries(
    output.flatMap((file) => (file.type === 'chunk' ? [[file.fileName, file.code]] : [])),
  );
}

/** The licences of packages, which must be distributed with their code. Throws if one names none. */
export async function licencesOf(packages: readonly string[]): Promise<string> {
  const texts = await Promise.all(packages.map((name) => licenceOf(`${root}node_modules/${name}`)));
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenceOf(folder: string): Promise<string> {
  const manifest = JSON.parse(await readFile(`${folder}/package.json`, 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license?: string;
  };
  const files = globSync('{LICENSE,LICENCE,license,NOTICE}*', { cwd: folder }).sort();
  if (files.length === 0 && manifest.license === undefined) throw new Error(`${folder} names no licence`);
  const texts = files.map(async (file) => (await readFile(`${folder}/${file}`, 'utf8')).trim());
  const licence = files.length === 0 ? [`${manifest.license} licence`] : await Promise.all(texts);
  return `${[`${manifest.name} ${manifest.version}`, ...licence].join('\n\n')}\n`;
}
