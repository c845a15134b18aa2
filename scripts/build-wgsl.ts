/**
 * Writes the shaders of gpu/ to gpu/generated/kernels-wgsl.ts, so that no file system is needed to load them.
 * A kernel has the name of its file, in any folder. A file in parts/ has the included texts of one subject: each
 * starts with a line `#part <name>` and is included as `parts/<name>`. Does not rewrite an unchanged file.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeChanged } from './write-changed.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const texts = new Map<string, string>();
for (const file of globSync('**/*.wgsl', { cwd: `${root}gpu` })) {
  const content = await readFile(`${root}gpu/${file}`, 'utf8');
  const parts = content.startsWith('#part ')
    ? content
        .split(/^#part /m)
        .slice(1)
        .map((part) => ({
          name: `parts/${part.slice(0, part.indexOf('\n'))}`,
          text: part.replace(/^.*\n/, ''),
        }))
    : [{ name: basename(file, '.wgsl'), text: content }];
  for (const { name, text } of parts) {
    if (texts.has(name)) throw new Error(`two shaders have the same name: ${name}`);
    texts.set(name, text.replace(/\n+$/, '\n'));
  }
}
const entries = [...texts.keys()]
  .sort()
  .map((name) => `  ${JSON.stringify(name)}: ${JSON.stringify(texts.get(name))},`);
const text = `/** Made by scripts/build-wgsl.ts from the shaders of gpu/; don't edit. */
export const kernelTexts: Readonly<Record<string, string>> = {
${entries.join('\n')}
};
`;
writeChanged('gpu/generated/kernels-wgsl.ts', text);
console.log(`gpu/generated/kernels-wgsl.ts: ${texts.size} texts`);
