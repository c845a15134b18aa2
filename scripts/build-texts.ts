/** Writes the texts of --help and `completion` to cli/generated/. */
import { completionScripts } from './completion-scripts.ts';
import { helpTexts } from './help-texts.ts';
import { writeChanged } from './write-changed.ts';

write(
  'help.ts',
  `By command ('' for the overview) and columns.`,
  'helpTexts: Readonly<Record<string, Readonly<Record<number, string>>>>',
  await helpTexts(),
);
write(
  'completions.ts',
  'By shell.',
  "completionScripts: Readonly<Record<'bash' | 'zsh' | 'fish', string>>",
  await completionScripts(),
);

function write(file: string, keys: string, declaration: string, texts: object): void {
  const head = `/** Made by scripts/build-texts.ts from the commands' definitions; don't edit. ${keys} */\n`;
  const text = `${head}export const ${declaration} = ${JSON.stringify(texts, undefined, 1)};\n`;
  writeChanged(`cli/generated/${file}`, text);
  console.log(`cli/generated/${file}: ${Object.keys(texts).length} texts`);
}
