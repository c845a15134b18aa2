import { formatCount } from '../../../engine/format.ts';
import type { RankingEvaluation } from '../../../index.ts';
import { Plot } from '../../generated/charts.js';
import { namedBaselines, pairParts } from '../../report/measured.ts';
import { type Chart, fill, stroke } from '../figure.ts';
import type { PageTable, Section } from '../page.ts';

/** Ranking metrics with 95 % intervals, compared with rankings that are the same for all users. */
export function rankingSection(ranking: RankingEvaluation): Section {
  const { users, availableUsers, candidates } = ranking;
  if (users === 0) return { heading: 'Rankings', text: 'No user is left to rank, so there are no metrics.' };
  return {
    heading: 'Rankings',
    text: `Means over ${formatCount(users)} users${availableUsers > users ? ` of ${formatCount(availableUsers)}` : ''}, of ${candidates ? 'rankings of the candidates' : 'full rankings of what each has not seen'}.`,
    charts: [metricsChart(ranking)],
    tables: [metricsTable(ranking)],
  };
}

/** The metrics that are between 0 and 1, each with its interval and the value of popularity. */
function metricsChart({ metrics, intervals, baselines }: RankingEvaluation): Chart {
  const shares = Object.entries(metrics)
    .filter(([, value]) => value >= 0 && value <= 1)
    .map(([name, value]) => ({
      name,
      value,
      low: intervals[name]?.[0] ?? value,
      high: intervals[name]?.[1] ?? value,
      popular: baselines.popularity?.[name],
    }));
  const known = shares.filter(({ popular }) => popular !== undefined);
  const popular = () =>
    Plot.dot(known, { x: 'popular', y: 'name', symbol: 'times', r: 4, ...stroke(1), strokeDasharray: '' });
  return {
    title: 'Ranking metrics',
    summary: shares.map(({ name, value }) => `${name} ${value.toFixed(4)}`).join(', '),
    series: [
      { name: 'model, with the 95 % interval', style: 0 },
      ...(known.length > 0 ? [{ name: 'most popular items for everyone', style: 1 }] : []),
    ],
    tips: shares.map((share) => ({
      x: share.value,
      y: share.name,
      text: `${share.name} ${number(share.value)}${share.popular === undefined ? '' : `\npopularity ${number(share.popular)}`}`,
    })),
    options: (width) => ({
      height: 50 + 26 * shares.length,
      marginLeft: Math.min(150, Math.round(0.4 * width)),
      x: { label: null, grid: true, zero: true },
      y: { label: null, domain: shares.map(({ name }) => name), type: 'point' },
      marks: [
        ...(known.length > 0 ? [popular()] : []),
        Plot.link(shares, { x1: 'low', x2: 'high', y1: 'name', y2: 'name', ...stroke(0) }),
        Plot.dot(shares, { x: 'value', y: 'name', r: 4, ...fill(0) }),
        Plot.ruleX([0]),
      ],
    }),
  };
}

function metricsTable({ metrics, intervals, baselines, ...found }: RankingEvaluation): PageTable {
  const others = [...pairParts(found), ...namedBaselines(baselines)];
  const rows = Object.entries(metrics).map(([name, value]) => [
    name,
    number(value),
    intervals[name] ? `${number(intervals[name][0])} to ${number(intervals[name][1])}` : '',
    ...others.map(([, values]) => number(values[name])),
  ]);
  return { head: ['metric', 'model', '95 % interval', ...others.map(([name]) => name)], rows };
}

function number(value: number | undefined): string {
  if (value === undefined) return '';
  return Number.isFinite(value) ? value.toFixed(4) : 'none';
}
