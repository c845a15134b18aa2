/**
 * Ranking metrics by their definitions, from whole rankings, sets and pairs: slow, and written apart from the
 * library's. Items are ranked by falling score. Those of equal scores are drawn one after the other, each
 * order being equally likely, and a metric is its expected value over these draws.
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
  const { users, items, seen, test, policy, score } = problem;
  const sums: Record<string, number> = {};
  const listed: number[][] = [];
  let count = policy === 'miss' ? problem.strangers : 0;
  for (let user = 0; user < users; user++) {
    const positives = [...test[user]].filter(
      (item) => !seen[user].has(item) && (policy === 'miss' || item < items),
    );
    if (positives.length === 0) continue;
    count++;
    const ranked = Array.from({ length: items }, (_, item) => item).filter((item) => !seen[user].has(item));
    const scores = ranked.map((item) => score(user, item));
    const isPositive = ranked.map((item) => positives.includes(item));
    for (const [name, value] of Object.entries(metricsOfList(scores, isPositive, positives.length, k)))
      sums[name] = (sums[name] ?? 0) + value;
    if (!positives.some((item) => item < items)) continue;
    const chances = chancesOf(scores, k);
    listed.push(
      Array.from({ length: items }, (_, item) => (seen[user].has(item) ? 0 : chances[ranked.indexOf(item)])),
    );
  }
  const named = Object.entries(sums).map(([name, sum]) => [
    name === 'mrr' || name === 'auc' ? name : `${name}@${k}`,
    sum / count,
  ]);
  const owners = Array.from({ length: items }, (_, item) => seen.filter((own) => own.has(item)).length);
  const entries = listed.flat().reduce((sum, chance) => sum + chance, 0);
  const surprise = listed
    .flatMap((own) => own.map((chance, item) => -chance * Math.log2((owners[item] + 1) / (users + 1))))
    .reduce((sum, one) => sum + one, 0);
  return {
    ...Object.fromEntries(named),
    [`coverage@${k}`]: coverageOf(listed),
    [`novelty@${k}`]: surprise / entries,
  };
}

/** Expected share of items in at least one list, from each list's chances of all items. */
export function coverageOf(lists: readonly (readonly number[])[]): number {
  const items = lists[0]?.length ?? 0;
  const absent = Array.from({ length: items }, (_, item) =>
    lists.reduce((chance, own) => chance * (1 - own[item]), 1),
  );
  return absent.reduce((sum, chance) => sum + 1 - chance, 0) / items;
}

/** For each item, the probability that it is among the first k. */
export function chancesOf(scores: readonly number[], k: number): number[] {
  return scores.map((own) => {
    const above = scores.filter((score) => score > own).length;
    const tied = scores.filter((score) => score === own).length;
    return Math.min(1, Math.max(0, (k - above) / tied));
  });
}

/**
 * The metrics of one list of items with scores, of which some are positives; `wanted`: the number of all
 * positives, unknown ones too. Follows the list from place to place, with the probability of each number of
 * positives so far.
 */
export function metricsOfList(
  scores: readonly number[],
  isPositive: readonly boolean[],
  wanted: number,
  k: number,
): Record<string, number> {
  const found = { hits: 0, gain: 0, precisions: 0, mrr: 0 };
  let chances = [1];
  let missed = 1;
  let place = 0;
  for (const score of [...new Set(scores)].sort((left, right) => right - left)) {
    const group = isPositive.filter((_, at) => scores[at] === score);
    const before = isPositive.filter((one, at) => one && scores[at] > score).length;
    const positives = group.filter((one) => one).length;
    for (let drawn = 0; drawn < group.length; drawn++, place++) {
      if (place === k) missed = chances[0];
      const next = Array.from({ length: chances.length + 1 }, () => 0);
      chances.forEach((chance, earlier) => {
        const hit = (chance * (positives - (earlier - before))) / (group.length - drawn);
        next[earlier] += chance - hit;
        next[earlier + 1] += hit;
        if (earlier === 0) found.mrr += hit / (place + 1);
        if (place >= k) return;
        found.hits += hit;
        found.gain += hit / Math.log2(place + 2);
        found.precisions += (hit * (earlier + 1)) / (place + 1);
      });
      chances = next;
    }
  }
  if (place <= k) missed = chances[0];
  const most = Math.min(k, wanted);
  const ideal = Array.from({ length: most }, (_, i) => 1 / Math.log2(i + 2)).reduce(
    (sum, one) => sum + one,
    0,
  );
  return {
    precision: found.hits / k,
    recall: found.hits / wanted,
    'recall-min': found.hits / most,
    ndcg: found.gain / ideal,
    map: found.precisions / most,
    'hit-rate': 1 - missed,
    mrr: found.mrr,
    auc: areaUnderCurve(scores, isPositive, wanted),
  };
}

/**
 * Counts the pairs of a positive and another item that are in the right order, half of those with equal
 * scores. Unknown positives are ranked after all others.
 */
function areaUnderCurve(scores: readonly number[], isPositive: readonly boolean[], wanted: number): number {
  let [ordered, pairs, ranked] = [0, 0, 0];
  scores.forEach((own, one) => {
    if (!isPositive[one]) return;
    ranked++;
    scores.forEach((score, other) => {
      if (isPositive[other]) return;
      pairs++;
      ordered += own > score ? 1 : own === score ? 0.5 : 0;
    });
  });
  return ((pairs > 0 ? ordered / pairs : 1) * ranked) / wanted;
}
