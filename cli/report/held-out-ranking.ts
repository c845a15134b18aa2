import { formatCount } from '../../engine/format.ts';
import type { HeldOutRanking } from './measured.ts';

/**
 * The metrics of held-out pairs, each compared with a ranking by popularity, and the number of users: entries
 * for `facts`.
 */
export function heldOutRankingFacts(
  ranking: HeldOutRanking | undefined,
): (readonly [name: string, value: string])[] {
  if (ranking === undefined) return [];
  const { metrics, popularity } = ranking;
  const lines = Object.keys(metrics).map(
    (name) =>
      [`test ${name}`, `${metrics[name].toFixed(4)}; popularity ${popularity[name].toFixed(4)}`] as const,
  );
  return [...lines, ['ranked users', rankedUsersText(ranking)]];
}

/** "10,000 of 52,643, drawn by the seed; --rank-users all ranks all" */
export function rankedUsersText({
  users,
  availableUsers,
}: Pick<HeldOutRanking, 'users' | 'availableUsers'>): string {
  return availableUsers > users
    ? `${formatCount(users)} of ${formatCount(availableUsers)}, drawn by the seed; --rank-users all ranks all`
    : formatCount(users);
}

/** The object for `--json`; null if nothing was ranked. */
export function heldOutRankingJson(ranking: HeldOutRanking | undefined) {
  return ranking === undefined
    ? null
    : { ...ranking, metrics: { ...ranking.metrics }, popularity: { ...ranking.popularity } };
}
