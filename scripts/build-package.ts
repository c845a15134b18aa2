/**
 * Bundles the declarations of build/types/, which have no internal members, into dist/types: a file for
 * each entry of the package.
 * Writes dist/.npmignore: modules that no program uses are left out of the package, and so are all other
 * declarations. The code of most modules of dist/ is in the bundles of dist/programs/.
 */
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = `${root}dist/`;

/** The files reachable from `roots`, with the roots; paths are relative to dist/. */
function reached(roots: readonly string[], next: (file: string) => string[]): string[] {
  const found = new Set(roots);
  for (const file of found) for (const path of next(file)) found.add(path);
  return [...found].sort();
}

/** The files whose relative paths are quoted in `file`. */
function references(file: string): string[] {
  const paths = [...readFileSync(dist + file, 'utf8').matchAll(/["'`](\.{1,2}\/[^"'`\s]+)["'`]/g)].map(
    ([, path]) => path,
  );
  return paths.map((path) => posix.join(posix.dirname(file), path)).filter((path) => existsSync(dist + path));
}

/** Bundles the declarations of an entry into one file. */
async function bundleTypes(name: string, entry: string): Promise<void> {
  const bundle = await rolldown({
    input: { [`${name}.d`]: `${root}build/types/${entry}.d.ts` },
    external: (id) => /^[@a-z]/.test(id),
    // The input has declarations alone, so that no compiler is asked for them.
    plugins: [dts({ dtsOnly: true, tsconfig: false, generator: 'oxc' })],
  });
  await bundle.write({ dir: `${dist}types`, entryFileNames: '[name].ts' });
  await bundle.close();
}

rmSync(`${dist}types`, { recursive: true, force: true });
await bundleTypes('index', 'index');
await bundleTypes('arrow', 'arrow');
await bundleTypes('browser', 'browser/index');
const modules = reached(['require.cjs', ...globSync('programs/**/*.js', { cwd: dist })], references);
const packed = [
  ...modules.filter((path) => !path.startsWith('programs/')),
  'programs/**/*.js',
  'programs/**/*.cjs',
  'page/*.js',
  'types/*.d.ts',
];
writeFileSync(
  `${dist}.npmignore`,
  ['.tsbuildinfo', '*.map', '*.js', '*.cjs', '*.ts', '*.cts', ...packed.map((path) => `!/${path}`), ''].join(
    '\n',
  ),
);
console.log(`dist/.npmignore: ${modules.length} modules are packed`);
