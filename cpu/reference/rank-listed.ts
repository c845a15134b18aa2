/**
 * Twin of cpu/assembly/rank-listed.ts: for each listed column of one row the number of columns before it by
 * score, ties by lower column, without excluded ones. A column with score NaN or -Infinity is before no
 * other.
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
