import { formatCount } from '../../engine/format.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';
import type { RatingShape, SideFacts } from './rating-facts.ts';

/** Kinds of warnings; the names are stable between releases. */
export type WarningCode =
  | 'one-rating'
  | 'one-row'
  | 'equal-ratings'
  | 'times'
  | 'counts'
  | 'single-ratings'
  | 'repeated-pairs'
  | 'cold-test'
  | 'no-better-than-means'
  | 'no-better-than-popularity'
  | 'past-best'
  | 'not-positive'
  | 'unused-numbers'
  | 'rank-above-size'
  | 'unknown-exclusions'
  | 'mostly-cold'
  | 'nothing-excluded';

/** Information about the ratings or the model for the user, with advice in terms of the library's options. */
export type TrainingWarning = {
  readonly code: WarningCode;
  readonly text: string;
};

/**
 * Ratings of at least this value are taken for times in seconds since 1970 (this is 1973): no scale of
 * ratings is as large.
 */
const LEAST_TIME = 1e8;
/** The largest value that is taken for a time: nanoseconds since 1970, in 2286. */
const LAST_TIME = 1e19;
/**
 * If the maximum is further above the mean than this number of standard deviations, the data do not look like
 * ratings on a scale. For comparison: on a scale of 0 to 100 with most ratings at 0, it is about 10 above.
 */
const HEAVY_TAIL = 12;
/** Scales of stars and points do not exceed this value. */
const LARGEST_SCALE = 20;

/**
 * Users or items with a single rating cause a warning only if their share is larger. Catalogues have many
 * rare items.
 */
const MOST_SINGLE = { user: 0.5, item: 0.9 } as const;

/**
 * Warnings about data that do not look like ratings on a scale. `duplicates`: number of ratings that repeat
 * an earlier pair, if known.
 */
export function ratingWarnings(
  facts: RatingShape,
  duplicates = 0,
  policy: DuplicatePolicy = 'keep',
): TrainingWarning[] {
  if (facts.ratings === 1)
    return [
      {
        code: 'one-rating',
        text:
          'there is one rating: the model can only repeat it. Check the input, the split and the ' +
          'policies for bad rows',
      },
    ];
  const warnings = [valueWarning(facts), ...sideWarnings(facts)];
  if (policy === 'keep' && duplicates > facts.ratings / 2) {
    warnings.push({
      code: 'repeated-pairs',
      text:
        `${formatCount(duplicates)} of ${formatCount(facts.ratings)} ratings repeat an earlier (user, ` +
        `item) pair, as events do. Each counts as a rating of its own, unless onDuplicates (sum, mean ` +
        `or last) makes one of them`,
    });
  }
  return warnings.filter((warning) => warning !== undefined);
}

/**
 * The warning about more factors than users or items: a matrix of m x n ratings has at most the rank min(m, n).
 */
export function rankWarnings(
  rank: number,
  { users, items }: { readonly users: number; readonly items: number },
): TrainingWarning[] {
  const [least, rows] = users < items ? [users, 'users'] : [items, 'items'];
  if (rank <= least || least < 2) return [];
  return [
    {
      code: 'rank-above-size',
      text:
        `rank ${formatCount(rank)} is above the number of ${rows}, ${formatCount(least)}, which is the ` +
        `largest rank that the ratings can have: more factors take time and memory, and add nothing. Lower ` +
        `the rank to ${formatCount(least)} or less`,
    },
  ];
}

function valueWarning({
  ratings,
  mean,
  deviation,
  least,
  most,
  whole,
}: RatingShape): TrainingWarning | undefined {
  if (least === most) {
    const text =
      `all ${formatCount(ratings)} ratings are ${plain(least)}: they show what was chosen, not how much ` +
      `it was liked. A model that predicts ${plain(least)} for every pair is perfect, so its order of ` +
      `items means nothing. Such data are implicit feedback, which ALS takes with implicitPrefs: true`;
    return { code: 'equal-ratings', text: `${text}; check ratingCol if there should be other values` };
  }
  if (whole && least >= LEAST_TIME && most <= LAST_TIME)
    return {
      code: 'times',
      text:
        `the ratings are whole numbers from ${plain(least)} to ${plain(most)}, which look like times. ` +
        `Check ratingCol`,
    };
  if (least < 0 || most <= LARGEST_SCALE || most - mean <= HEAVY_TAIL * deviation) return undefined;
  const kind = whole ? 'counts' : 'amounts';
  return {
    code: 'counts',
    text:
      `the ratings look like ${kind}: up to ${plain(most)}, with a mean of ${plain(mean)}. The few ` +
      `largest decide the squared error. Take them as implicit feedback, with implicitPrefs: true of ` +
      `ALS, or train on log(1 + r) in their place`,
  };
}

/**
 * Warnings about users and items with too few ratings. With a single user, every item has one rating, so only
 * the user is reported.
 */
function sideWarnings({ users, items }: RatingShape): (TrainingWarning | undefined)[] {
  const alone = users.rated === 1 ? 'user' : items.rated === 1 ? 'item' : undefined;
  if (alone !== undefined)
    return [
      { code: 'one-row', text: `there is one ${alone}: factors have nothing to compare. Check ${alone}Col` },
    ];
  return [singleWarning(users, 'user'), singleWarning(items, 'item')];
}

function singleWarning({ rated, single }: SideFacts, side: 'user' | 'item'): TrainingWarning | undefined {
  if (single <= MOST_SINGLE[side] * rated) return undefined;
  const share =
    single === rated
      ? `all ${formatCount(rated)} ${side}s`
      : `${formatCount(single)} of ${formatCount(rated)} ${side}s`;
  return {
    code: 'single-ratings',
    text:
      `${share} have one rating each, from which little can be learned about them. Check that ` +
      `${side}Col names ${side}s, not ${side === 'user' ? 'sessions or orders' : 'copies or events'}`,
  };
}

function plain(value: number): string {
  return Math.abs(value) >= 1000 ? formatCount(value) : String(Number(value.toPrecision(4)));
}
