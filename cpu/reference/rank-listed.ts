/**
 * Twin of cpu/assembly/rank-listed.ts: for each listed column of one row the number of columns before it by
 * score, ties by lower column, excluded ones left out. A score that is not a number, or -Infinity, is before
 * none.
 *
 */
export function rankListed(
  scores: ArrayLike<number>,
  listed: ArrayLike<number>,
  excluded: ReadonlySet<number>,
): number[] {
  const scored = Array.from({ length: scores.length }, (_, column) => column).filter(
    (column) => scores[column] > -Infinity && !excluded.has(column),
  );
  return Array.from(listed, (column) => {
    const own = scores[column] > -Infinity ? scores[column] : -Infinity;
    return scored.filter((other) => scores[other] > own || (scores[other] === own && other < column)).length;
  });
}
