/** Configuration of the site. `npm run site` writes the pages and their list (build/site) before. */
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import { guide, reference, siteLink, sitePages } from '../../scripts/site/site-pages.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = resolve(root, 'build/site/pages');
const pageOf = sitePages(root);
const fileOf = new Map([...pageOf].map(([file, page]) => [page, file]));
const { bugs } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8')) as { bugs: { url: string } };
const repository = bugs.url.replace(/\/issues$/, '/blob/main');

const titleOf = (page: string) => {
  const text = readFileSync(resolve(pages, `${page}.md`), 'utf8');
  return text.match(/^# (.+)$/m)?.[1].replaceAll('`', '') ?? page;
};
const item = (page: string) => ({ text: titleOf(page), link: `/${page}` });
const namesIn = (folder: string) =>
  readdirSync(resolve(pages, folder))
    .filter((file) => file.endsWith('.md') && file !== 'index.md')
    .toSorted()
    .map((file) => file.slice(0, -'.md'.length));
const folder = (name: string) => namesIn(name).map((page) => item(`${name}/${page}`));
const decisions = { text: 'Decisions', link: '/decisions/' };
/** Parts of the API by the folders that TypeDoc writes. */
const kinds = {
  Classes: 'classes',
  Functions: 'functions',
  Constants: 'variables',
  Interfaces: 'interfaces',
  Types: 'type-aliases',
};

/**
 * Search: words of questions ("how do I ...") do not count, and pages for users come before the reference.
 * Both functions are sent to the browser as text, so they use nothing outside themselves.
 */
const searching = {
  options: {
    processTerm: (term: string) =>
      /^(a|an|and|are|can|do|does|for|from|how|i|if|in|is|it|my|no|of|on|or|the|to|what|which|with)$/i.test(
        term,
      )
        ? null
        : term.toLowerCase(),
  },
  searchOptions: {
    boostDocument: (id: string) =>
      /^\/(api|decisions|inside|measured|reference|changelog)/.test(id) ? 0.4 : 1,
  },
};

/** It is built next to the pages, so that the site's router must not open it. */
const livePage = { text: 'Live: films in a page', link: '/films/', target: '_self' };

export default defineConfig({
  title: 'FactorFlow',
  description: 'Matrix factorization at any scale, from TypeScript',
  srcDir: pages,
  outDir: resolve(root, 'build/site/html'),
  cacheDir: resolve(root, 'build/site/cache'),
  cleanUrls: true,
  lastUpdated: false,
  appearance: true,
  head: [
    [
      'style',
      {},
      '.vp-doc :is(.command, .language-sh) code ' +
        '{ width: auto; white-space: pre-wrap; overflow-wrap: anywhere } ' +
        '.vp-doc :is(.command, .language-sh) .line ' +
        '{ display: inline-block; padding-left: 2ch; text-indent: -2ch }',
    ],
  ],
  themeConfig: {
    search: { provider: 'local', options: { miniSearch: searching } },
    outline: [2, 3],
    nav: [
      { text: 'Questions', link: '/questions' },
      { text: 'All pages', link: '/contents' },
      { text: 'Commands', link: '/reference/cli' },
      { text: 'API', link: '/api/' },
      { text: 'Examples', link: '/examples/01-train' },
    ],
    sidebar: {
      '/examples/': [{ text: 'Examples', items: [...folder('examples'), livePage] }],
      '/decisions/': [{ ...decisions, items: folder('decisions') }],
      '/api/': Object.entries(kinds).map(([text, kind]) => ({
        text,
        collapsed: kind !== 'classes',
        items: namesIn(`api/${kind}`).map((name) => ({ text: name, link: `/api/${kind}/${name}` })),
      })),
      '/': [
        ...Object.entries(guide).map(([text, names]) => ({
          text,
          collapsed: text === 'Inside',
          items: [...names.map(item), ...(text === 'Inside' ? [decisions] : [])],
        })),
        { text: 'Reference', items: [...reference.map(item), { text: 'API by name', link: '/api/' }] },
      ],
    },
  },
  markdown: {
    html: false,
    // As GitHub, so that links to headings work in both.
    anchor: {
      slugify: (title) =>
        title
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .replaceAll(/\s/g, '-'),
    },
    config: (md) => {
      // Links are of the project's files: they become links of the pages.
      md.core.ruler.push('project-links', ({ tokens, env }) => {
        const { relativePath } = env as { readonly relativePath: string };
        const file = fileOf.get(relativePath);
        if (file === undefined) return;
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const name = { link_open: 'href', image: 'src' }[token.type];
          const href = name === undefined ? null : token.attrGet(name);
          if (name !== undefined && href !== null)
            token.attrSet(name, siteLink(href, { file, pages: pageOf, root, repository }));
        }
      });
      // Indented blocks of the pages are commands, which wrap, and what they print.
      md.renderer.rules.code_block = (tokens, at, options, env, self) => {
        const html = md.renderer.rules.fence?.(tokens, at, options, env, self) ?? '';
        const isCommand = /^(factorflow|npm|npx|node|pip|printf|spark-submit) /.test(tokens[at].content);
        return isCommand ? html.replace('class="language-', 'class="command language-') : html;
      };
      // Vue would take doubled braces of a text as an expression.
      md.renderer.rules.text = (tokens, at) =>
        md.utils.escapeHtml(tokens[at].content).replaceAll('{{', '&#123;&#123;');
    },
  },
});
