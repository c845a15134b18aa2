/** The numbers of ratings of users (or items) with at least one; `rated` is the number of these users. */
export interface DegreeSummary {
  readonly rated: number;
  readonly minimum: number;
  readonly median: number;
  readonly mean: number;
  readonly maximum: number;
}

/** Counts users by degree instead of sorting them: there can be a hundred million. */
export function summarizeDegrees(degrees: Int32Array): DegreeSummary {
  let [rated, sum, minimum, maximum] = [0, 0, Infinity, 0];
  for (const degree of degrees) {
    if (degree === 0) continue;
    rated++;
    sum += degree;
    if (degree < minimum) minimum = degree;
    if (degree > maximum) maximum = degree;
  }
  if (rated === 0) return { rated, minimum: 0, median: 0, mean: 0, maximum: 0 };
  const having = new Uint32Array(maximum + 1);
  for (const degree of degrees) having[degree]++;
  having[0] = 0;
  const at = (place: number) => {
    let before = 0;
    for (let degree = minimum; ; degree++) if ((before += having[degree]) > place) return degree;
  };
  return {
    rated,
    minimum,
    median: (at((rated - 1) >>> 1) + at(rated >>> 1)) / 2,
    mean: sum / rated,
    maximum,
  };
}

/**
 * The summary for `along` copies of the users (or items). Each of them has ratings in `across` copies of the
 * other side.
 */
export function copiedDegrees(
  { rated, minimum, median, mean, maximum }: DegreeSummary,
  along: number,
  across: number,
): DegreeSummary {
  return {
    rated: rated * along,
    minimum: minimum * across,
    median: median * across,
    mean: mean * across,
    maximum: maximum * across,
  };
}
