import { formatCount, counted } from '../../../engine/format.ts';
import type { Trial, Tuning } from '../../../index.ts';
import { Plot } from '../../generated/charts.js';
import { flagName } from '../../options/option.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { sortedTrials, type Tried, trialRows } from '../../report/tuning.ts';
import { searchVerdict } from '../../report/verdict.ts';
import { type Chart, fill } from '../figure.ts';
import type { Section, Report } from '../page.ts';

/** Most trials in charts and in the table: a page of thousands opens within a second. */
const MOST_POINTS = 1000;
const MOST_ROWS = 200;

/** With more points, charts have no tooltips: they would be most of the page. */
const MOST_TIPS = 200;

/** The trials of a search: their values in order, after baselines, and by each numeric parameter. */
export function trialsSection({ trials, baselines }: Tried, metric: string): Section {
  const [best] = sortedTrials(trials, metric);
  const usable = trials.filter(({ failure }) => failure === undefined);
  const names = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  const numbers = names.filter(
    (name) =>
      new Set(usable.map(({ params }) => params[name])).size > 1 &&
      usable.every(({ params }) => typeof params[name] === 'number'),
  );
  const { head, rows } = trialRows({ trials, baselines }, metric);
  const shown = sampleOf(sortedTrials(usable, metric));
  return {
    heading: 'Trials',
    text: `The best is trial ${best.number}: ${metric} ${best.value.toFixed(4)} on the validation ratings. The best of many is too good by a little; no test set was looked at.${trials.length > MOST_ROWS ? ` The table has the ${MOST_ROWS} best of ${formatCount(trials.length)} trials` : ''}${shown.length < usable.length ? `, the charts the ${formatCount(MOST_POINTS / 2)} best and an even sample of the others` : ''}${trials.length > MOST_ROWS ? '; the metadata of the model have all.' : ''}`,
    charts: [
      points(`${metric} by trial`, shown, metric, 'trial', ({ number }) => number, best),
      ...numbers.map((name) =>
        points(
          `${metric} by ${flagName(name)}`,
          shown,
          metric,
          flagName(name),
          ({ params }) => params[name] as number,
          best,
        ),
      ),
    ],
    tables: [
      {
        head,
        rows: rows.slice(0, MOST_ROWS + rows.length - trials.length),
        numbers: (column) => column < head.length - 1,
      },
    ],
  };
}

/** The best trials (half of what charts show), and an even sample of the others. */
function sampleOf(sorted: readonly Trial[]): readonly Trial[] {
  if (sorted.length <= MOST_POINTS) return sorted;
  const best = sorted.slice(0, MOST_POINTS / 2);
  const others = sorted.slice(best.length);
  return [
    ...best,
    ...Array.from(
      { length: MOST_POINTS / 2 },
      (_, at) => others[Math.floor((at * others.length) / (MOST_POINTS / 2))],
    ),
  ];
}

function points(
  title: string,
  trials: readonly Trial[],
  metric: string,
  name: string,
  of: (trial: Trial) => number,
  best: Trial,
): Chart {
  const all = trials.map((trial) => ({ x: of(trial), y: trial.value, trial }));
  const least = Math.min(...all.map(({ x }) => x));
  const wide = name !== 'trial' && least > 0 && Math.max(...all.map(({ x }) => x)) / least >= 10;
  const text = (trial: Trial) =>
    `trial ${trial.number}\n${metric} ${trial.value.toFixed(4)}\n${Object.entries(trial.params)
      .map(([param, value]) => `${flagName(param)} ${String(value)}`)
      .join(', ')}`;
  return {
    title,
    summary: `The best value, ${best.value.toFixed(4)}, is at ${name} ${of(best)}.`,
    series: [
      { name: 'best', style: 1 },
      { name: 'others', style: 0 },
    ],
    tips: all.length > MOST_TIPS ? [] : all.map(({ x, y, trial }) => ({ x, y, text: text(trial) })),
    options: (width) => ({
      height: Math.max(220, Math.round(0.5 * width)),
      marginLeft: 56,
      marginTop: 30,
      marginBottom: 44,
      x: {
        label: name,
        labelOffset: 40,
        ...(wide ? { type: 'log', tickFormat: '~g' } : {}),
        ...(name === 'trial'
          ? {
              ticks: Math.min(trials.length, width < 500 ? 6 : 12),
              tickFormat: (x: number) => (Number.isInteger(x) ? String(x) : ''),
            }
          : {}),
      },
      y: { label: metric, grid: true, nice: true },
      marks: [
        Plot.dot(
          all.filter(({ trial }) => trial !== best),
          { x: 'x', y: 'y', r: 4, ...fill(0), fillOpacity: 0.7 },
        ),
        Plot.dot(
          all.filter(({ trial }) => trial === best),
          { x: 'x', y: 'y', r: 7, symbol: 'star', ...fill(1) },
        ),
      ],
    }),
  };
}

/** Most parameters of the best trial on the first screen. */
const MOST_TILES = 4;

interface SearchRun {
  readonly adapter: string | null;
  readonly totalSeconds: number;
  readonly warnings: readonly string[];
}

/** The page of a search. */
export function searchPage(
  { best, trials, baselines }: Tuning,
  metric: string,
  { adapter, totalSeconds, warnings }: SearchRun,
): Report {
  const params = Object.entries(best.params).slice(0, MOST_TILES);
  const tiles = [
    ...params.map(([name, value]) => ({
      name: flagName(name),
      value: String(value),
      remark: 'of the best trial',
    })),
    { name: 'time', value: seconds3(totalSeconds), remark: counted(trials.length, 'trial') },
  ];
  const { charts = [], ...section } = trialsSection({ trials, baselines }, metric);
  return {
    title: `Search: ${counted(trials.length, 'trial')}, ${metric}`,
    adapter,
    warnings,
    lead: { verdict: searchVerdict(best, trials.length, metric), tiles, charts: charts.slice(0, 1) },
    sections: [{ ...section, charts: charts.slice(1) }],
  };
}
