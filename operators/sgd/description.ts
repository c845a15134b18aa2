import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { rankWarnings } from '../evaluation/rating-warnings.ts';
import { rankingReasons } from '../params/common.ts';
import { factorStride } from '../planner/sizes.ts';
import { lambdasOf, type SgdParams, shrinkOf } from './params.ts';
import type { SgdProblem } from './problem.ts';
import { devicesOf } from './schedules/blocks-schedule.ts';
import { convergenceReport, dominantItem } from './schedules/convergence.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

/** Facts about data and parameters, for the head of a printed plan. */
export function describeProblem({
  profile: { users, items, ratings, testRatings },
  params,
}: SgdProblem): JsonObject {
  const { users: lambdaUsers, items: lambdaItems } = lambdasOf(params);
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank k': params.biases ? `${params.rank} and biases` : params.rank,
    λ: lambdaUsers === lambdaItems ? lambdaUsers : `${lambdaUsers} for users, ${lambdaItems} for items`,
    epochs: params.maxIter,
    seed: params.seed,
  };
}

/**
 * The reasons for the choices of the whole plan, for printing. `versionBytes`: bytes of one version of the
 * factors.
 */
export function planReasons(
  { profile, params, schedule, features, device: { strideStep } }: SgdProblem,
  versionBytes: number,
): string[] {
  return [
    ...rankWarnings(params.rank, profile).map(({ text }) => `warning: ${text}`),
    ...shrinkReason(params),
    ...rankingReasons(params, 'epoch'),
    ...(params.biases
      ? [
          'biases: two more features, [β, 1] and [1, γ], whose 1s stay constant; μ is subtracted from ' +
            'the ratings',
        ]
      : []),
    `${features} features are stored with a stride of ${factorStride(features, strideStep)} floats ` +
      `(whole ${strideStep === 8 ? '256-bit groups' : `tiles of ${strideStep}`}; padding is 0)`,
    `an epoch updates a copy of the factors, ${formatBytes(versionBytes)}: if its loss rises by a ` +
      `tenth, or is not a number, it is run again at half the rate, at most three times`,
    determinism(schedule),
  ];
}

/** The reasons for the choices of an epoch, and warnings. */
export function epochReasons({ profile, params, schedule, details }: SgdProblem): string[] {
  const { text, warning } = convergenceReport({ ...profile, ...details }, schedule);
  const warnings = [warning, dominantItem({ ratings: profile.ratings, itemCounts: details.itemCounts })];
  return [
    ...schedule.reasons,
    rateReason(params),
    text,
    ...warnings.flatMap((one) => (one === undefined ? [] : [`WARNING: ${one}`])),
  ];
}

export function startReason({ params: { biases }, details: { start } }: SgdProblem): string {
  if (start !== undefined)
    return (
      `training continues from ${start}; new users and items start at their least-squares solutions, ` +
      `regularized towards the mean row of the model`
    );
  return (
    `Gaussian factors drawn by seed and external id, small compared with the ` +
    `ratings${biases ? '' : ', shifted so that initial predictions are near the mean rating'}`
  );
}

/** The sentence of a plan about regularization in addition to λ. */
function shrinkReason(params: SgdParams): string[] {
  const { users, items } = shrinkOf(params);
  const parts = [
    users.offset === 0 ? [] : [`factors by 1 + ${users.offset} γ`],
    users.damping === 0 && items.damping === 0
      ? []
      : [`biases of users and items by 1 + ${users.damping} γ and 1 + ${items.damping} γ`],
  ].flat();
  return parts.length === 0
    ? []
    : [
        `an epoch of rate γ first divides ${parts.join(', ')}: the effect of one epoch of the offset ` +
          `o of λ n + o and of the damping of biases, for any number of ratings of a row`,
      ];
}

function rateReason({ rate, learningRate: alpha, decay }: SgdParams): string {
  const form = {
    paper: `γ_t = ${alpha} / (1 + ${decay} t^1.5), t = 0, 1, .. (cuMF_SGD)`,
    constant: `γ = ${alpha}`,
    bold:
      `γ = ${alpha} at first, then 5 % more after an epoch whose loss fell and half after one ` +
      `whose loss rose`,
    adagrad: `${alpha} / √(1 + G) with a sum G of squared gradients for each user and item`,
  }[rate];
  return `rate ${rate}: ${form}, in units of 1 / σ`;
}

function determinism(schedule: SgdSchedule): string {
  const { kind, rowBands, columnBands, precision, deviceBlocks } = schedule;
  if (deviceBlocks)
    return (
      `blocks: ${devicesOf(schedule) > 1 ? 'different devices share no row and no column; ' : ''}inside ` +
      `a block the steps of different teams interleave at random, so no two runs give the same bits`
    );
  if (kind === 'hogwild' || kind === 'tile')
    return `${kind}: steps of different workers interleave at random, so no two runs give the same bits`;
  if (precision !== undefined)
    return (
      `waves run one after the other in the order drawn for the epoch, so any run with this grid of ` +
      `${rowBands} x ${columnBands} and seed gives the same bits on such a GPU`
    );
  return (
    `blocks that share a band run in the order drawn for the epoch, so any run with this grid of ` +
    `${rowBands} x ${columnBands} and seed gives the same bits`
  );
}
