import { formatCount } from '../../../engine/format.ts';
import { barChart } from '../figure.ts';
import type { Section } from '../page.ts';

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

/** Users or items whose number of ratings is from `least` to `most`. */
interface DegreeBin {
  readonly least: number;
  readonly most: number;
  /** Number of users, or items. */
  readonly rows: number;
  /** Their total number of ratings. */
  readonly ratings: number;
}

/** Rows by number of ratings, in bins [1], [2, 3], [4, 7], ...; rows without ratings are in no bin. */
export function degreeBins(counts: ArrayLike<number>): DegreeBin[] {
  const bins: { least: number; most: number; rows: number; ratings: number }[] = [];
  for (let row = 0; row < counts.length; row++) {
    const count = counts[row];
    if (count === 0) continue;
    const at = 31 - Math.clz32(count);
    while (bins.length <= at)
      bins.push({ least: 2 ** bins.length, most: 2 ** (bins.length + 1) - 1, rows: 0, ratings: 0 });
    bins[at].rows++;
    bins[at].ratings += count;
  }
  const first = bins.findIndex(({ rows }) => rows > 0);
  return bins.slice(Math.max(0, first));
}
