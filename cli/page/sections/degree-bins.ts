/** Users or items whose number of ratings is from `least` to `most`. */
export interface DegreeBin {
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
