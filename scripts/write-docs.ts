/** Writes the pages of docs/ that are made from the sources: `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apiPage } from './docs/api-page.ts';
import { cliPage } from './docs/cli-page.ts';
import { publishedPage } from './docs/published-page.ts';
import { performancePage } from './docs/results.ts';

const note = '<!-- Written by `npm run docs`; changes made here by hand are lost. -->\n\n';

/** The pages of docs/ that are generated from the sources: content by path relative to the project's root. */
export async function generatedPages(root: string): Promise<Readonly<Record<string, string>>> {
  return {
    'docs/reference/api.md': note + apiPage(root),
    'docs/reference/cli.md': note + (await cliPage()),
    'docs/measured/performance.md': note + performancePage(root),
    'docs/measured/published-tables.md': note + publishedPage(),
  };
}

if (import.meta.main) {
  const root = resolve(import.meta.dirname, '..');
  for (const [path, content] of Object.entries(await generatedPages(root))) {
    writeFileSync(join(root, path), content);
    console.log(`wrote ${path}`);
  }
}
