/**
 * Plain version of cpu/assembly/top-n.ts: the n columns with the highest scores of one row, of equal ones the
 * lower columns. Excluded columns, and columns with the score NaN or -Infinity, are left out.
 */
export function topN(scores: ArrayLike<number>, n: number, excluded: ReadonlySet<number>): number[] {
  return Array.from({ length: scores.length }, (_, column) => column)
    .filter((column) => scores[column] > -Infinity && !excluded.has(column))
    .sort((a, b) => scores[b] - scores[a] || a - b)
    .slice(0, n);
}

/**
 * Plain version of cpu/assembly/rank-listed.ts. For each listed column of one row, returns the number of
 * columns with a higher score, then the number of columns with the same score. Excluded columns, and columns
 * with the score NaN or -Infinity, are not counted.
 */
export function rankListed(
  scores: ArrayLike<number>,
  listed: ArrayLike<number>,
  excluded: ReadonlySet<number>,
): number[] {
  const scored = Array.from({ length: scores.length }, (_, column) => column).filter(
    (column) => scores[column] > -Infinity && !excluded.has(column),
  );
  return Array.from(listed).flatMap((column) => {
    const own = scores[column] > -Infinity ? scores[column] : -Infinity;
    const count = (counts: (score: number) => boolean) =>
      scored.filter((other) => counts(scores[other])).length;
    return [count((score) => score > own), count((score) => score === own)];
  });
}
