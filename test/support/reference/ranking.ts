/**
 * Ranking metrics by their definitions, from sorted lists, sets and pairs: slow, and written apart from the
 * library's. Every ranking is whole: items by falling score, ties by id.
 */
export interface RankingProblem {
  /** score(user, item) for items 0 .. items - 1 and users 0 .. users - 1. */
  readonly score: (user: number, item: number) => number;
  readonly users: number;
  readonly items: number;
  readonly seen: readonly ReadonlySet<number>[];
  /** Test items; items that are not in 0 .. items - 1 are unknown. */
  readonly test: readonly ReadonlySet<number>[];
  /** Users of the test that the model does not know. */
  readonly strangers: number;
  readonly policy: 'drop' | 'miss';
}

/** The metrics of k. */
export function referenceMetrics(problem: RankingProblem, k: number): Record<string, number> {
  const { users, items, seen, test, policy } = problem;
  const sums: Record<string, number> = {
    precision: 0,
    recall: 0,
    'recall-min': 0,
    ndcg: 0,
    map: 0,
    'hit-rate': 0,
    mrr: 0,
    auc: 0,
  };
  const recommended: number[] = [];
  let count = policy === 'miss' ? problem.strangers : 0;
  for (let user = 0; user < users; user++) {
    const list = rankedItems(problem, user);
    const positives = [...test[user]].filter(
      (item) => !seen[user].has(item) && (policy === 'miss' || item < items),
    );
    if (positives.length === 0) continue;
    count++;
    const relevant = list.map((item) => (positives.includes(item) ? 1 : 0));
    const top = relevant.slice(0, k);
    const hits = top.reduce((sum: number, one) => sum + one, 0);
    const ideal = Array.from(
      { length: Math.min(k, positives.length) },
      (_, i) => 1 / Math.log2(i + 2),
    ).reduce((sum, one) => sum + one, 0);
    sums.precision += hits / k;
    sums.recall += hits / positives.length;
    sums['recall-min'] += hits / Math.min(k, positives.length);
    sums.ndcg += top.reduce((sum: number, one, place) => sum + one / Math.log2(place + 2), 0) / ideal;
    sums.map +=
      top.reduce(
        (sum: number, one, place) =>
          sum +
          (one * top.slice(0, place + 1).reduce((before: number, other) => before + other, 0)) / (place + 1),
        0,
      ) / Math.min(k, positives.length);
    sums['hit-rate'] += hits > 0 ? 1 : 0;
    sums.mrr += relevant.includes(1) ? 1 / (relevant.indexOf(1) + 1) : 0;
    sums.auc += areaUnderCurve(relevant, positives.length);
    if (positives.some((item) => item < items)) recommended.push(...list.slice(0, k));
  }
  const named = Object.entries(sums).map(([name, sum]) => [
    name === 'mrr' || name === 'auc' ? name : `${name}@${k}`,
    sum / count,
  ]);
  const owners = Array.from({ length: items }, (_, item) => seen.filter((own) => own.has(item)).length);
  const surprises = recommended.map((item) => -Math.log2((owners[item] + 1) / (users + 1)));
  return {
    ...Object.fromEntries(named),
    [`coverage@${k}`]: new Set(recommended).size / items,
    [`novelty@${k}`]: surprises.reduce((sum, one) => sum + one, 0) / surprises.length,
  };
}

export function rankedItems(
  { score, items, seen }: Pick<RankingProblem, 'score' | 'items' | 'seen'>,
  user: number,
): number[] {
  return Array.from({ length: items }, (_, item) => item)
    .filter((item) => !seen[user].has(item))
    .sort((left, right) => score(user, right) - score(user, left) || left - right);
}

/**
 * Counts the pairs of a positive and another item that are in the right order. Unknown positives are ranked
 * after all others.
 */
function areaUnderCurve(relevant: readonly number[], positives: number): number {
  let [ordered, pairs] = [0, 0];
  relevant.forEach((one, place) => {
    if (one === 1)
      relevant.forEach(
        (other, behind) =>
          ([ordered, pairs] =
            other === 1 ? [ordered, pairs] : [ordered + (behind > place ? 1 : 0), pairs + 1]),
      );
  });
  const ranked = relevant.filter((one) => one === 1).length;
  const share = pairs > 0 ? ordered / pairs : 1;
  return (share * ranked) / positives;
}
