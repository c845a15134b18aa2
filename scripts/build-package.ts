/**
 * Writes dist/.npmignore: modules that no program refers to and declarations that no public type refers to
 * stay out of the package. The code of most modules of dist/ is in the bundles of dist/programs/.
 *
 */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));

/** The files that `roots` lead to, and the roots; paths are relative to dist/. */
function reached(roots: readonly string[], next: (file: string) => string[]): string[] {
  const found = new Set(roots);
  for (const file of found) for (const path of next(file)) found.add(path);
  return [...found].sort();
}

/** The files whose relative paths `file` has in quotes. */
function references(file: string): string[] {
  const paths = [...readFileSync(dist + file, 'utf8').matchAll(/["'`](\.{1,2}\/[^"'`\s]+)["'`]/g)].map(
    ([, path]) => path,
  );
  return paths.map((path) => posix.join(posix.dirname(file), path)).filter((path) => existsSync(dist + path));
}

/**
 * Declarations in dist/types/ have no internal members, as tests and the command use. A declaration imports
 * `./model.ts`, which is `./model.d.ts` in dist/.
 */
function declarations(file: string): string[] {
  const imports = [
    ...readFileSync(dist + file, 'utf8').matchAll(/\b(?:from|import) ?\(?["'](\.[^"']+)\.[jt]s["']/g),
  ];
  return imports.map(([, path]) => `${posix.join(posix.dirname(file), path)}.d.ts`);
}

const modules = reached(['require.cjs', ...globSync('programs/**/*.js', { cwd: dist })], references);
const types = reached(['types/index.d.ts'], declarations);
const packed = [...modules.filter((path) => !path.startsWith('programs/')), 'programs/**/*.js', ...types];
writeFileSync(
  `${dist}.npmignore`,
  ['.tsbuildinfo', '*.map', '*.js', '*.ts', '*.cts', ...packed.map((path) => `!/${path}`), ''].join('\n'),
);
console.log(`dist/.npmignore: ${modules.length} modules and ${types.length} declarations are packed`);
