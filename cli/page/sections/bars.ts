import { Plot } from '../../generated/charts.js';
import { type Chart, fill } from '../figure.ts';

export interface Bar {
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
