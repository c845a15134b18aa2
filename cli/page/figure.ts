import { Plot } from '../generated/charts.js';
import { document, element, svgElement, table } from './document.ts';

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
  const keys = series.map(({ name, style }) => element('span.key', sample(style), name));
  return element(
    'figure',
    element('figcaption', element('strong', title), ' ', element('span', summary)),
    keys.length > 1 ? element('div.legend', ...keys) : undefined,
    ...drawings,
    numbers && element('details', element('summary', 'Numbers'), table(numbers.head, numbers.rows)),
  );
}

/** A short line in the style of a quantity. */
function sample(style: number): Element {
  const { stroke: colour, strokeDasharray } = stroke(style);
  const line = { x1: 0, x2: 28, y1: 4, y2: 4, stroke: colour };
  return svgElement(
    'svg',
    { width: 28, height: 8, 'aria-hidden': 'true' },
    svgElement('line', { ...line, 'stroke-width': 3, 'stroke-dasharray': strokeDasharray }),
  );
}

/** A point of a chart in the units of its scales, with its tooltip. */
export interface Tip {
  readonly x: number | string;
  readonly y: number | string;
  readonly text: string;
}

/** Hover areas over a drawing that show tooltips with CSS only, without a script. */
function tipLayer(tips: readonly Tip[], drawing: ReturnType<typeof Plot.plot>): HTMLElement | undefined {
  const [x, y] = [drawing.scale('x'), drawing.scale('y')];
  if (tips.length === 0 || x === undefined || y === undefined) return undefined;
  const [width, height] = ['width', 'height'].map((name) => Number(drawing.getAttribute(name)));
  const places = tips.map((tip) =>
    tipAt((100 * Number(x.apply(tip.x))) / width, (100 * Number(y.apply(tip.y))) / height, tip.text),
  );
  return element('div', { 'aria-hidden': 'true' }, ...places);
}

/** The hover area of one tooltip, in percent of the drawing; tooltips in the right half open to the left. */
export function tipAt(x: number, y: number, text: string, kind = 'tip'): HTMLElement {
  const style = `left:${x.toFixed(1)}%;top:${y.toFixed(1)}%`;
  return element('i', { class: x > 50 ? `${kind} left` : kind, style, 'data-tip': text });
}

interface Bar {
  readonly name: string;
  readonly value: number;
  /** The value as text. */
  readonly text: string;
}

/** Horizontal bars, each with its name and its value as text. */
export function barChart(
  title: string,
  summary: string,
  bars: readonly Bar[],
  style: number,
  numbers?: Chart['numbers'],
): Chart {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const longest = Math.max(...bars.map(({ name }) => name.length), 0);
  return {
    title,
    summary,
    ...(numbers ? { numbers } : {}),
    options: (width) => ({
      height: 30 + 24 * bars.length,
      marginLeft: Math.min(Math.round(0.45 * width), 20 + 7 * longest),
      marginRight: 90,
      x: { label: null, ticks: [], domain: [0, most === 0 ? 1 : most] },
      y: { label: null, domain: bars.map(({ name }) => name), tickSize: 0 },
      marks: [
        Plot.barX(bars, {
          x: 'value',
          y: 'name',
          ...fill(style),
          title: ({ name, text }: Bar) => `${name}: ${text}`,
        }),
        Plot.text(bars, { x: 'value', y: 'name', text: 'text', dx: 5, textAnchor: 'start' }),
        Plot.ruleX([0]),
      ],
    }),
  };
}
