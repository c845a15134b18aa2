import { formatCount } from '../../engine/format.ts';
import type { Tuning } from '../../index.ts';
import { flagName } from '../options/option.ts';
import type { Report } from '../page/section.ts';
import { trialsSection } from '../page/sections/trials.ts';
import { seconds3 } from '../progress/phrases.ts';
import { searchVerdict } from './verdict.ts';

/** Parameters of the best trial on the first screen. */
const MOST_TILES = 4;

/** The page of a search. */
export function searchPage({ best, trials }: Tuning, metric: string, { adapter, totalSeconds }: { readonly adapter: string | null; readonly totalSeconds: number }): Report {
  const params = Object.entries(best.params).slice(0, MOST_TILES);
  const tiles = [...params.map(([name, value]) => ({ name: flagName(name), value: String(value), remark: 'of the best trial' })), { name: 'time', value: seconds3(totalSeconds), remark: `${formatCount(trials.length)} trials` }];
  return { title: `Search: ${formatCount(trials.length)} trials, ${metric}`, adapter, lead: { verdict: searchVerdict(best, trials.length, metric), tiles }, sections: [trialsSection(trials, metric)] };
}
