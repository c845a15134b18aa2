/**
 * Writes the texts of gpu/kernels to gpu/generated/kernels-wgsl.ts, by their paths there without the ending, so that they
 * need no file system. An unchanged file is left alone.
 */
import { globSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}gpu/generated/kernels-wgsl.ts`;

const files = globSync('**/*.wgsl', { cwd: `${root}gpu/kernels` }).sort();
const entries = await Promise.all(
  files.map(async (file) => `  ${JSON.stringify(file.replace(/\.wgsl$/, '').replaceAll('\\', '/'))}: ${JSON.stringify(await readFile(`${root}gpu/kernels/${file}`, 'utf8'))},`),
);
const text = `/** Made by scripts/build-wgsl.ts from gpu/kernels; don't edit. */
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
