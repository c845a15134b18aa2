/** Writes the texts of --help and `completion` to cli/generated/. Does not rewrite an unchanged file. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { helpTexts } from './help-texts.ts';
import { completionScripts } from './completion-scripts.ts';

const folder = fileURLToPath(new URL('../cli/generated/', import.meta.url));
await mkdir(folder, { recursive: true });
await write(
  'help.ts',
  `By command ('' for the overview) and columns.`,
  'helpTexts: Readonly<Record<string, Readonly<Record<number, string>>>>',
  await helpTexts(),
);
await write(
  'completions.ts',
  'By shell.',
  "completionScripts: Readonly<Record<'bash' | 'zsh' | 'fish', string>>",
  await completionScripts(),
);

async function write(file: string, keys: string, declaration: string, texts: object): Promise<void> {
  const text = `/** Made by scripts/build-texts.ts from the commands' definitions; don't edit. ${keys} */\nexport const ${declaration} = ${JSON.stringify(texts, undefined, 1)};\n`;
  if ((await readFile(folder + file, 'utf8').catch(() => '')) !== text) await writeFile(folder + file, text);
  console.log(`cli/generated/${file}: ${Object.keys(texts).length} texts`);
}
