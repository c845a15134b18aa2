import { counted } from '../../engine/format.ts';
import type { Tuning } from '../../index.ts';
import { flagName } from '../options/option.ts';
import type { Report } from '../page/section.ts';
import { trialsSection } from '../page/sections/trials.ts';
import { seconds3 } from '../progress/phrases.ts';
import { searchVerdict } from './verdict.ts';

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
