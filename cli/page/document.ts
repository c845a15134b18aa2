import { parseHTML } from '../generated/charts.js';

/** The document in which pages are built. Only its text is used. */
export const { document } = parseHTML('<!doctype html><html lang="en"><head></head><body></body></html>');

export type Child = Node | string | undefined;

/** An HTML element. Strings become text nodes, so nothing in them is parsed as HTML. */
export function element(
  tag: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElement {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  append(made, children);
  return made;
}

/** An SVG element. */
export function svgElement(
  tag: string,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly Child[]
): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  append(made, children);
  return made;
}

function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined) continue;
    parent.appendChild(typeof child === 'string' ? document.createTextNode(child) : child);
  }
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
  const body = rows.map((row) => element('tr', {}, ...row.map((text, column) => cell('td', text, column))));
  return element(
    'div',
    { class: 'scroll' },
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...head.map((text, column) => cell('th', text, column)))),
      element('tbody', {}, ...body),
    ),
  );
}

/** Names and values; entries without a value are left out. */
export function factList(
  entries: readonly (readonly [name: string, value: string | null | undefined])[],
): HTMLElement {
  const known = entries.filter((entry): entry is readonly [string, string] => typeof entry[1] === 'string');
  return element(
    'dl',
    {},
    ...known.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
  );
}
