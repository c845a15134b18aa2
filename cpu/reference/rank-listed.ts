/**
 * Plain version of cpu/assembly/rank-listed.ts. For each listed column of one row, returns the number of
 * columns before it: those with a higher score, or an equal score and a lower number. Excluded columns, and
 * columns with the score NaN or -Infinity, are not counted.
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
