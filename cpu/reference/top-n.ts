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
