import { withoutControls } from '../../engine/format.ts';
import { element, factList, table } from './document.ts';
import { figure } from './figure.ts';
import { GENERATOR } from './generator.ts';
import type { Lead, Report, Section } from './section.ts';
import { style } from './style.ts';

/** A report as one self-contained HTML page: no script, no address, no font. */
export function pageOf({ title, lead, warnings = [], sections }: Report): string {
  const notes =
    warnings.length === 0
      ? undefined
      : element(
          'div',
          { class: 'warnings', role: 'note' },
          element('ul', {}, ...warnings.map((text) => element('li', {}, text))),
        );
  const links = element(
    'nav',
    { 'aria-label': 'Contents' },
    element(
      'ul',
      {},
      ...sections.map(({ heading }) =>
        element('li', {}, element('a', { href: `#${idOf(heading)}` }, heading)),
      ),
    ),
  );
  const main = element(
    'main',
    {},
    element('h1', {}, title),
    ...(lead ? leadOf(lead) : []),
    notes,
    ...(lead?.charts ?? []).map(figure),
    links,
    ...sections.map(sectionOf),
  );
  const titleText = element('title', {}, title).outerHTML;
  return withoutControls(
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n${GENERATOR}\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n${titleText}\n<style>${style}</style>\n</head>\n<body>\n${main.outerHTML}\n</body>\n</html>\n`,
  );
}

function leadOf({ verdict: { tone, text, detail }, tiles = [] }: Lead): HTMLElement[] {
  const line = element(
    'p',
    { class: `verdict ${tone}` },
    element('strong', {}, text),
    detail === undefined ? undefined : element('span', {}, detail),
  );
  const numbers = tiles.map(({ name, value, remark }) =>
    element(
      'div',
      {},
      element('dt', {}, name),
      element(
        'dd',
        {},
        element('strong', {}, value),
        remark === undefined ? undefined : element('span', {}, remark),
      ),
    ),
  );
  return [line, ...(numbers.length === 0 ? [] : [element('dl', { class: 'tiles' }, ...numbers)])];
}

function sectionOf({ heading, text, facts, charts = [], tables = [], drawing, code }: Section): HTMLElement {
  return element(
    'section',
    { id: idOf(heading), 'aria-label': heading },
    element('h2', {}, heading),
    text === undefined ? undefined : element('p', {}, text),
    code === undefined ? undefined : element('pre', {}, code),
    facts && factList(facts),
    drawing?.(),
    ...charts.map(figure),
    ...tables.flatMap(({ title, head, rows, numbers }) => [
      title === undefined ? undefined : element('h3', {}, title),
      rows.length > 12
        ? element('details', {}, element('summary', {}, `${rows.length} rows`), table(head, rows, numbers))
        : table(head, rows, numbers),
    ]),
  );
}

function idOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}
