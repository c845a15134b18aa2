import { DataError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import type { Evaluation, EventSink, RankingEvaluation } from '../../index.ts';

/** Throws DataError if the model knows no test pair. */
export function requireKnownPairs({ pairs, coldPairs }: Pick<Evaluation, 'pairs' | 'coldPairs'>): void {
  if (coldPairs < pairs) return;
  const reason = `there is nothing to measure: the model knows none of the ${formatCount(pairs)} pairs`;
  const advice =
    'Check that the ids are of the kind that the model was trained on, and that userCol and itemCol name their columns';
  throw new DataError(reason, { phase: 'evaluate', advice });
}

/** Throws DataError if no user is left to rank, with the reasons. */
export function requireRankedUsers(found: RankingEvaluation): void {
  if (found.users > 0) return;
  const { pairs, coldPairs, leakedPairs, irrelevantPairs, candidates } = found;
  const reasons = (
    [
      [
        coldPairs,
        'have a user or an item that the model does not know',
        'that the ids are of the kind that the model was trained on',
      ],
      [
        leakedPairs,
        'are excluded as well',
        'that the test ratings are not in the data set of the option exclude',
      ],
      [irrelevantPairs, 'are rated below minRating', 'minRating'],
    ] as const
  ).filter(([count]) => count > 0);
  const left = reasons.map(([count, text]) => `${formatCount(count)} ${text}`);
  const checks: string[] = reasons.map(([, , check]) => check);
  if (candidates !== undefined && candidates.usersWithout > 0) {
    left.push(`${formatCount(candidates.usersWithout)} users have no candidate`);
    checks.push('that the candidates are of the users of the test ratings');
  }
  const reason = `no user is left to rank: of ${formatCount(pairs)} test pairs ${left.join(', ')}`;
  throw new DataError(reason, { phase: 'evaluate', advice: `Check ${checks.join(', and ')}` });
}

/** A listener that drops the warning that no pair is known, since the command reports it as an error. */
export function withoutColdTest(onEvent: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'warning' || event.code !== 'cold-test') onEvent(event);
  };
}
