/** Writes the pages of docs/ that are made from the sources. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { generatedPages } from './docs/pages.ts';

const root = resolve(import.meta.dirname, '..');
for (const [path, content] of Object.entries(await generatedPages(root))) {
  writeFileSync(join(root, path), content);
  console.log(`wrote ${path}`);
}
