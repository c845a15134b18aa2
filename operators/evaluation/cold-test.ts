import { formatCount } from '../../engine/format.ts';
import type { TrainingWarning } from './rating-warnings.ts';

/**
 * A pair is cold if the model does not know its user or item; errors leave it out. With at least this share
 * of cold pairs, the errors no longer describe the test set.
 */
const MOSTLY_COLD = 0.3;

export interface TestCounts {
  /** Number of all test pairs, and of those whose user or item has no training rating. */
  readonly pairs: number;
  readonly coldPairs: number;
  /** Default: the test set. */
  readonly set?: 'the test set' | 'the validation set';
}

/** A warning if all test pairs are cold, or at least 30 % of them. */
export function coldWarnings({ pairs, coldPairs, set = 'the test set' }: TestCounts): TrainingWarning[] {
  if (pairs === 0) return [{ code: 'cold-test', text: `${set} has no ratings; there is no test error` }];
  if (coldPairs === pairs) {
    const text = `the model knows none of ${set}'s ${formatCount(coldPairs)} pairs: their users or items have no training rating`;
    return [
      { code: 'cold-test', text: `${text}. Check that the ids are of one kind; there is no test error` },
    ];
  }
  if (coldPairs < MOSTLY_COLD * pairs) return [];
  const percent = Math.floor((100 * coldPairs) / pairs);
  const cold = `${formatCount(coldPairs)} of ${set}'s ${formatCount(pairs)} pairs (${percent} %) are cold: their user or item has no training rating`;
  const rest = `The result is of the other ${formatCount(pairs - coldPairs)} pairs alone`;
  const advice =
    'After a split by time most of the later users are new: hold out the latest ratings of each user instead (leave-out by time), ' +
    'or evaluate only users and items that are known. For another test set check the ids';
  return [{ code: 'mostly-cold', text: `${cold}. ${rest}. ${advice}` }];
}
