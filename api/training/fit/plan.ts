import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import { fingerprintOf } from '../checkpoints/data-fingerprint.ts';
import { budgetOf } from '../kept-ratings.ts';
import { dataBytes } from '../plans/memory-budget.ts';
import { ifFits, requireFits, requireSizes, type GivenPlan } from '../plans/given-plan.ts';
import type { ChosenPlan, FitAlgorithm, FitTypes, InspectedData } from './algorithm.ts';
import type { FitRun } from './fit-run.ts';
import type { InspectPhase } from './inspect.ts';

/**
 * The largest share of the memory for data that matrices of a checkpoint may take from its check to their
 * first use.
 */
const KEPT_SHARE = 1 / 8;

/**
 * Makes the final plan: the given plan, or the plan of a resumed checkpoint, or one chosen for the ratings.
 */
export function planPhase<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  run: FitRun,
  { data, heldOut, warnings, judged }: InspectPhase<Types>,
): ScopeStage<ChosenPlan<Types>> {
  const { scope, checkpoints } = run;
  const resumed = scope.stage('resume', { data }, async ({ data: found }, ctx) => {
    if (checkpoints === undefined) return undefined;
    const { read, sorted, test } = found;
    const { users, items } = read.indexed;
    const fingerprint = await fingerprintOf({ users, items, ratings: sorted.byRow, test: test?.block }, ctx);
    const keptBytes = KEPT_SHARE * dataBytes(budgetOf(run.ratings));
    return checkpoints.begin(fingerprint, algorithm.matrices(found), keptBytes);
  });
  // The training may overwrite the ratings. So their means are computed before it, unless the algorithm keeps
  // the ratings.
  const inspected = scope.stage(
    'inspected before training',
    { data },
    ({ data: { home } }) => (algorithm.judgesWhileTraining(home) ? undefined : judged.result),
    { need: 'none' },
  );
  const ready = scope.stage(
    'ratings to train on',
    { data, resumed },
    (found, ctx) => algorithm.ready(found.data, ctx),
    { after: [heldOut, inspected] },
  );
  return scope.stage('plan', { data, ready, resumed, warnings }, (found, ctx) =>
    chosenPlan(algorithm, run, found, ctx),
  );
}

async function chosenPlan<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  { given, checkpoints }: FitRun,
  {
    data,
    ready,
    resumed,
  }: {
    readonly data: InspectedData<Types>;
    readonly ready: Types['ready'];
    readonly resumed: GivenPlan | undefined;
  },
  ctx: ExecutionContext,
): Promise<ChosenPlan<Types>> {
  const { known } = ready;
  const { test, read } = data;
  const asRead: RatingsProfile = {
    ...known,
    ratings: read.indexed.rows,
    testRatings: test && test.block.ratings + test.coldPairs,
  };
  const profiles = [known, asRead] as const;
  if (given) requireSizes(given, profiles);
  if (given) algorithm.requireProblem(given, data);
  const planned = (plan: GivenPlan) => algorithm.plannedChoice(plan, data, profiles, ctx);
  const choice = given
    ? await planned(given)
    : ((resumed && (await ifFits(() => planned(resumed)))) ?? (await algorithm.choose(data, ready, ctx)));
  const plan = algorithm.planFor(known, data, choice);
  checkpoints?.planned(plan, resumed);
  if (given) requireFits(given, [plan, algorithm.planFor(asRead, data, choice)]);
  const chosen = { ready, choice, plan };
  await algorithm.planned(data, chosen, ctx);
  ctx.events({ type: 'plan', plan });
  return chosen;
}
