/**
 * Writes the shaders of gpu/ to gpu/generated/kernels-wgsl.ts, so that no file system is needed to load them.
 * A kernel has the name of its file, in any folder; an included part is `parts/<file>`. Does not rewrite an
 * unchanged file.
 */
import { globSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}gpu/generated/kernels-wgsl.ts`;

const nameOf = (file: string) => `${file.startsWith('parts/') ? 'parts/' : ''}${basename(file, '.wgsl')}`;
const files = globSync('**/*.wgsl', { cwd: `${root}gpu` }).sort((left, right) =>
  nameOf(left) < nameOf(right) ? -1 : 1,
);
const names = files.map(nameOf);
if (new Set(names).size < names.length)
  throw new Error(`two shaders have the same name: ${names.join(', ')}`);
const entries = await Promise.all(
  files.map(
    async (file) =>
      `  ${JSON.stringify(nameOf(file))}: ${JSON.stringify(await readFile(`${root}gpu/${file}`, 'utf8'))},`,
  ),
);
const text = `/** Made by scripts/build-wgsl.ts from the shaders of gpu/; don't edit. */
export const kernelTexts: Readonly<Record<string, string>> = {
${entries.join('\n')}
};
`;
const before = await readFile(target, 'utf8').catch(() => '');
if (before !== text) {
  await mkdir(`${root}gpu/generated`, { recursive: true });
  await writeFile(target, text);
}
console.log(`gpu/generated/kernels-wgsl.ts: ${files.length} texts`);
