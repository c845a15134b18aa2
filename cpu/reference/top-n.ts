/**
 * Twin of cpu/assembly/top-n.ts: the n best columns of one row's scores, ties by lower column, NaN and
 * -Infinity left out.
 */
export function topN(scores: ArrayLike<number>, n: number, excluded: ReadonlySet<number>): number[] {
  return Array.from({ length: scores.length }, (_, column) => column)
    .filter((column) => scores[column] > -Infinity && !excluded.has(column))
    .sort((a, b) => scores[b] - scores[a] || a - b)
    .slice(0, n);
}
