/** Writes the texts of --help to cli/generated/help.ts. An unchanged file is not written again. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { helpTexts } from './help-texts.ts';

const folder = fileURLToPath(new URL('../cli/generated/', import.meta.url));
const texts = await helpTexts();
const text = `/** Made by scripts/build-help.ts from the commands' definitions; don't edit. By command ('' for the overview) and columns. */
export const helpTexts: Readonly<Record<string, Readonly<Record<number, string>>>> = ${JSON.stringify(texts, undefined, 1)};
`;
if ((await readFile(`${folder}help.ts`, 'utf8').catch(() => '')) !== text) {
  await mkdir(folder, { recursive: true });
  await writeFile(`${folder}help.ts`, text);
}
console.log(`cli/generated/help.ts: ${Object.keys(texts).length} texts`);
