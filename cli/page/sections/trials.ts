import type { Trial } from '../../../index.ts';
import { sortedTrials, trialRows } from '../../report/tuning.ts';
import { Plot } from '../../generated/charts.js';
import { type Chart, fill } from '../figure.ts';
import type { Section } from '../section.ts';

/** The trials of a search: their values in order, and by each parameter that is a number. */
export function trialsSection(trials: readonly Trial[], metric: string): Section {
  const [best] = sortedTrials(trials, metric);
  const usable = trials.filter(({ failure }) => failure === undefined);
  const names = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  const numbers = names.filter((name) => new Set(usable.map(({ params }) => params[name])).size > 1 && usable.every(({ params }) => typeof params[name] === 'number'));
  const { head, rows } = trialRows(trials, metric);
  return {
    heading: 'Trials',
    text: `The best is trial ${best.number}: ${metric} ${best.value.toFixed(4)} on the validation ratings. The best of many is too good by a little; no test set was looked at.`,
    charts: [points(`${metric} by trial`, usable, metric, 'trial', ({ number }) => number, best), ...numbers.map((name) => points(`${metric} by ${name}`, usable, metric, name, ({ params }) => params[name] as number, best))],
    tables: [{ head, rows, numbers: (column) => column < head.length - 1 }],
  };
}

function points(title: string, trials: readonly Trial[], metric: string, name: string, of: (trial: Trial) => number, best: Trial): Chart {
  const all = trials.map((trial) => ({ x: of(trial), y: trial.value, trial }));
  const least = Math.min(...all.map(({ x }) => x));
  const wide = name !== 'trial' && least > 0 && Math.max(...all.map(({ x }) => x)) / least >= 10;
  const text = ({ trial }: (typeof all)[number]) => `trial ${trial.number}: ${metric} ${trial.value.toFixed(4)}`;
  return {
    title,
    summary: `The best value, ${best.value.toFixed(4)}, is at ${name} ${of(best)}.`,
    series: [{ name: 'best', style: 1 }, { name: 'others', style: 0 }],
    options: (width) => ({
      height: Math.round(0.5 * width),
      marginLeft: 56,
      x: { label: name, ...(wide ? { type: 'log', tickFormat: '~g' } : {}), ...(name === 'trial' ? { tickFormat: (x: number) => (Number.isInteger(x) ? String(x) : '') } : {}) },
      y: { label: metric, grid: true, nice: true },
      marks: [
        Plot.dot(all.filter(({ trial }) => trial !== best), { x: 'x', y: 'y', r: 4, ...fill(0), fillOpacity: 0.7, title: text }),
        Plot.dot(all.filter(({ trial }) => trial === best), { x: 'x', y: 'y', r: 7, symbol: 'star', ...fill(1), title: text }),
      ],
    }),
  };
}
