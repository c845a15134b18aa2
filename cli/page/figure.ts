import { document, element, table } from './document.ts';
import { type Tip, tipLayer } from './tips.ts';
import { Plot } from '../generated/charts.js';

/** One quantity of a chart, distinguished not only by colour. */
export interface Series {
  readonly name: string;
  /** 0 to 3: a colour of the page and a pattern of dashes. */
  readonly style: number;
}

export interface Chart {
  readonly title: string;
  /** The chart's message in words, for readers who cannot see it. */
  readonly summary: string;
  readonly series?: readonly Series[];
  readonly options: (width: number) => Plot.PlotOptions;
  /** Texts that appear when the mouse is near a point. */
  readonly tips?: readonly Tip[];
  /** The numbers of the chart. */
  readonly numbers?: { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] };
}

/** Widths of the two drawings of each chart: one for screens, one for phones. */
const WIDTHS = { wide: 700, narrow: 340 } as const;

const DASHES = ['', '6 3', '2 3', '8 3 2 3'] as const;

/** Options of a mark for a quantity with a style. */
export function stroke(style: number): {
  readonly stroke: string;
  readonly strokeDasharray: string;
  readonly strokeWidth: number;
} {
  return { stroke: `var(--series-${style})`, strokeDasharray: DASHES[style], strokeWidth: 2 };
}

export function fill(style: number): { readonly fill: string } {
  return { fill: `var(--series-${style})` };
}

/** A chart with its title, legend and table of numbers. */
export function figure({ title, summary, series = [], options, tips = [], numbers }: Chart): HTMLElement {
  const drawings = Object.entries(WIDTHS).map(([name, width]) => {
    const svg = Plot.plot({
      document,
      width,
      style: { background: 'none', fontSize: '12px' },
      ...options(width),
    });
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', `${title}. ${summary}`);
    return element('div', { class: `chart ${name}` }, svg, tipLayer(tips, svg));
  });
  const keys = series.map(({ name, style }) => element('span', { class: 'key' }, sample(style), name));
  return element(
    'figure',
    {},
    element('figcaption', {}, element('strong', {}, title), ' ', element('span', {}, summary)),
    keys.length > 1 ? element('div', { class: 'legend' }, ...keys) : undefined,
    ...drawings,
    numbers && element('details', {}, element('summary', {}, 'Numbers'), table(numbers.head, numbers.rows)),
  );
}

/** A short line in the style of a quantity. */
function sample(style: number): Element {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [name, value] of Object.entries({ width: '28', height: '8', 'aria-hidden': 'true' }))
    svg.setAttribute(name, value);
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  const { stroke: colour, strokeDasharray } = stroke(style);
  for (const [name, value] of Object.entries({
    x1: '0',
    x2: '28',
    y1: '4',
    y2: '4',
    stroke: colour,
    'stroke-width': '3',
    'stroke-dasharray': strokeDasharray,
  }))
    line.setAttribute(name, value);
  svg.appendChild(line);
  return svg;
}
