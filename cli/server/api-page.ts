import { ownPages } from './open-api.ts';
import type { Fields } from './fields.ts';
import type { Route } from './route.ts';

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{font:600 1.05rem ui-monospace,monospace;margin:2rem 0 0}p{margin:.2rem 0}
table{border-collapse:collapse;margin:.4rem 0}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
code{font-family:ui-monospace,monospace}`;

/** The routes as a page, which loads nothing else. */
export function apiPage(routes: readonly Route[]): string {
  const sections = routes.map(
    ({ method, path, summary, query, body }) =>
      `<h2>${method} ${text(path)}</h2><p>${text(summary)}</p>${table(query, 'query')}${table(body, 'body')}`,
  );
  const own = ownPages.map(({ path, summary }) => `<h2>GET ${path}</h2><p>${text(summary)}</p>`);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>FactorFlow</title><style>${style}</style>
<h1>FactorFlow</h1><p>The same as <a href="openapi.json">openapi.json</a>. An error is
<code>{"error": {"code", "message"}}</code>.</p>${sections.join('\n')}\n${own.join('\n')}</html>\n`;
}

function table(fields: Fields, where: string): string {
  const rows = Object.entries(fields).map(
    ([name, { describe, required }]) =>
      `<tr><td><code>${text(name)}</code></td><td>${where}${required ? ', required' : ''}</td><td>${text(describe)}</td></tr>`,
  );
  return rows.length === 0 ? '' : `<table>${rows.join('')}</table>`;
}

function text(given: string): string {
  return given.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
