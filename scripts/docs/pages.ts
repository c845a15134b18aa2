import { apiPage } from './api-page.ts';
import { cliPage } from './cli-page.ts';
import { performancePage } from './results.ts';
import { publishedPage } from './published-page.ts';

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
