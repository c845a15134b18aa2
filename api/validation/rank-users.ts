import { UsageError } from '../../engine/errors.ts';
import { RANKED_USERS } from '../../operators/evaluation/ranking/ranked-pairs.ts';
import { shown } from '../../engine/shown.ts';

/** Users whose rankings are measured. */
export interface RankUsersOption {
  /**
   * Most users to rank. If there are more, this number of users is drawn by the seed; the draw does not
   * depend on row order. Default 10,000; 'all' ranks every user.
   */
  readonly rankUsers?: number | 'all';
}

/** The option as a number. Throws UsageError for another value. */
export function checkRankUsers({ rankUsers = RANKED_USERS }: RankUsersOption): number {
  if (rankUsers === 'all') return Number.POSITIVE_INFINITY;
  if (Number.isSafeInteger(rankUsers) && rankUsers >= 1) return rankUsers;
  throw new UsageError(`rankUsers must be all or a whole number of 1 or more, got ${shown(rankUsers)}`);
}
