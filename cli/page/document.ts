import { parseHTML } from '../generated/charts.js';

/** The document in which pages are built. Only its text is used. */
export const { document } = parseHTML('<!doctype html><html lang="en"><head></head><body></body></html>');

type Attributes = Readonly<Record<string, string | number>>;
export type Child = Node | string | undefined;

/**
 * An HTML element, named like `p` or `div.chart`, of attributes and children. Strings become text nodes, so
 * nothing in them is parsed as HTML.
 */
export function element(name: string, ...parts: readonly (Child | Attributes)[]): HTMLElement {
  const [tag, ...classes] = name.split('.');
  const own = classes.length > 0 ? [{ class: classes.join(' ') }] : [];
  return filled(document.createElement(tag), [...own, ...parts]);
}

/** An SVG element. */
export function svgElement(tag: string, ...parts: readonly (Child | Attributes)[]): SVGElement {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag) as SVGElement, parts);
}

function filled<Made extends Element>(made: Made, parts: readonly (Child | Attributes)[]): Made {
  for (const part of parts) {
    if (part === undefined) continue;
    if (typeof part === 'string') made.appendChild(document.createTextNode(part));
    else if (isNode(part)) made.appendChild(part);
    else for (const [name, value] of Object.entries(part)) made.setAttribute(name, String(value));
  }
  return made;
}

function isNode(part: Node | Attributes): part is Node {
  return 'nodeType' in part;
}

/** A table with a head; `numbers`: the columns to align right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: (column: number) => boolean = (column) => column > 0,
): HTMLElement {
  const cell = (tag: 'th' | 'td', text: string, column: number) =>
    element(
      tag,
      { ...(numbers(column) ? { class: 'number' } : {}), ...(tag === 'th' ? { scope: 'col' } : {}) },
      text,
    );
  const body = rows.map((row) => element('tr', ...row.map((text, column) => cell('td', text, column))));
  return element(
    'div.scroll',
    element(
      'table',
      element('thead', element('tr', ...head.map((text, column) => cell('th', text, column)))),
      element('tbody', ...body),
    ),
  );
}

/** Names and values; entries without a value are left out. */
export function factList(
  entries: readonly (readonly [name: string, value: string | null | undefined])[],
): HTMLElement {
  const known = entries.filter((entry): entry is readonly [string, string] => typeof entry[1] === 'string');
  return element('dl', ...known.flatMap(([name, value]) => [element('dt', name), element('dd', value)]));
}
