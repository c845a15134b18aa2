import { formatCount } from '../../../engine/format.ts';
import { degreeBins } from './degree-bins.ts';
import type { Section } from '../section.ts';
import { barChart } from './bars.ts';

/** The numbers of ratings of users and of items. */
export function ratingsSection(sides: {
  readonly users?: ArrayLike<number> | undefined;
  readonly items?: ArrayLike<number> | undefined;
}): Section | undefined {
  const charts = (['users', 'items'] as const).flatMap((side) => {
    const counts = sides[side];
    if (counts === undefined) return [];
    const bins = degreeBins(counts);
    const rows = bins.map(({ least, most, rows: own, ratings }) => [
      range(least, most),
      formatCount(own),
      formatCount(ratings),
    ]);
    const bars = bins.map(({ least, most, rows: own }) => ({
      name: range(least, most),
      value: own,
      text: formatCount(own),
    }));
    const largest = bins.reduce((best, bin) => (bin.rows > best.rows ? bin : best), bins[0]);
    const summary = `Most ${side} have ${range(largest.least, largest.most)} rating${largest.most === 1 ? '' : 's'}: ${formatCount(largest.rows)} of ${formatCount(bins.reduce((sum, bin) => sum + bin.rows, 0))}.`;
    return [
      barChart(
        `${side === 'users' ? 'Users' : 'Items'} by their number of ratings`,
        summary,
        bars,
        side === 'users' ? 0 : 1,
        { head: ['ratings', side, 'ratings in all'], rows },
      ),
    ];
  });
  return charts.length === 0 ? undefined : { heading: 'Ratings', charts };
}

export function range(least: number, most: number): string {
  return least === most ? formatCount(least) : `${formatCount(least)} to ${formatCount(most)}`;
}
