/** The pages of the documentation's site, without building it. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { guide, pageText, reference, siteLink, sitePages } from '../../scripts/site/site-pages.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = sitePages(root);
const target = (file: string) => ({ file, pages, root, repository: 'https://example.org/blob/main' });

it('has every page of docs/ in a side bar, and no other', () => {
  const listed = [...Object.values(guide).flat(), ...reference].map((page) => `${page}.md`);
  const folders = /^(examples|decisions)\//;
  const all = [...pages.values()].filter((page) => !folders.test(page));
  expect(listed.toSorted()).toEqual(
    all.filter((page) => page !== 'index.md' && page !== 'contents.md').toSorted(),
  );
});

it('has no two files on one page', () => {
  expect(new Set(pages.values()).size).toBe(pages.size);
});

it.each([
  ['docs/README.md', 'choosing.md', 'choosing.md'],
  ['docs/README.md', 'decisions/README.md', 'decisions/index.md'],
  ['docs/decisions/README.md', '../gpu.md#kernels', '../gpu.md#kernels'],
  ['docs/embedding.md', '../examples/01-train.ts', 'examples/01-train.md'],
  ['README.md', 'docs/', 'contents.md'],
  ['README.md', 'docs/pictures/report.png', './pictures/report.png'],
  ['docs/README.md', '../operators/als/README.md', 'inside/als.md'],
  [
    'docs/serving.md',
    '../examples/serve/Dockerfile',
    'https://example.org/blob/main/examples/serve/Dockerfile',
  ],
  ['README.md', 'https://nodejs.org', 'https://nodejs.org'],
  ['README.md', '#limits', '#limits'],
])('from %s %s is %s', (file, href, link) => {
  expect(siteLink(href, target(file))).toBe(link);
});

it('refuses a link to a file that does not exist', () => {
  expect(() => siteLink('missing.md', target('README.md'))).toThrow(
    'README.md has a link to missing.md, which does not exist',
  );
});

it.each([...pages.keys()].filter((file) => file.endsWith('.md')))(
  '%s has no link to a server of the reader, which VitePress refuses',
  (file) => {
    const text = pageText(root, file).replaceAll(/```.*?```|`[^`\n]*`/gs, '');
    const prose = text.split('\n').filter((line) => !line.startsWith('    '));
    expect(prose.filter((line) => /https?:\/\/(localhost|127\.0\.0\.1)/.test(line))).toEqual([]);
  },
);

it('shows an example as code', () => {
  const code = readFileSync(join(root, 'examples/01-train.ts'), 'utf8');
  expect(pageText(root, 'examples/01-train.ts')).toContain(`# 01-train.ts\n\n\`\`\`ts\n${code}\`\`\`\n`);
});
