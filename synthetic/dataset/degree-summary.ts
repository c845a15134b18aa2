/** The numbers of ratings of users (or items) that have any; `rated` counts those. */
export interface DegreeSummary {
  readonly rated: number;
  readonly minimum: number;
  readonly median: number;
  readonly mean: number;
  readonly maximum: number;
}

export function summarizeDegrees(degrees: Int32Array): DegreeSummary {
  const sorted = degrees.filter((degree) => degree > 0).sort();
  const rated = sorted.length;
  if (rated === 0) return { rated, minimum: 0, median: 0, mean: 0, maximum: 0 };
  let sum = 0;
  for (const degree of sorted) sum += degree;
  const median = (sorted[(rated - 1) >> 1] + sorted[rated >> 1]) / 2;
  return { rated, minimum: sorted[0], median, mean: sum / rated, maximum: sorted[rated - 1] };
}

/** The summary for `along` copies of the users (or items), each with ratings in `across` copies of the other side. */
export function copiedDegrees({ rated, minimum, median, mean, maximum }: DegreeSummary, along: number, across: number): DegreeSummary {
  return { rated: rated * along, minimum: minimum * across, median: median * across, mean: mean * across, maximum: maximum * across };
}
