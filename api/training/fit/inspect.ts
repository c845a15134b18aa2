import type { ExecutionContext } from '../../../engine/run/context.ts';
import { constant, type ScopeStage } from '../../../engine/run/scope.ts';
import type { HeldOutPairs } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import type { TrainingWarning } from '../../../operators/evaluation/rating-warnings.ts';
import { keepKnown } from '../../../operators/ratings/ids/known-pairs.ts';
import { isKept, loadedOnce } from '../kept-ratings.ts';
import { findProblems, type ValidationPairs } from '../rating-findings.ts';
import { unusedRatings } from '../unrated-as-ones.ts';
import { ranksHeldOut } from '../rank-held-out.ts';
import type { FitAlgorithm, FitTypes, InspectedData, Judged } from './algorithm.ts';
import type { FitRun } from './fit-run.ts';
import type { ReadPhase } from './read.ts';

/** The stages of the inspecting phase. */
export interface InspectPhase<Types extends FitTypes> {
  readonly data: ScopeStage<InspectedData<Types>>;
  readonly heldOut: ScopeStage<HeldOutPairs | undefined>;
  readonly warnings: ScopeStage<readonly TrainingWarning[]>;
  readonly judged: ScopeStage<Judged>;
}

/** Sorts the ratings, finds the known pairs of the validation set, and checks both for problems. */
export function inspectPhase<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  run: FitRun,
  stages: ReadPhase<Types>,
): InspectPhase<Types> {
  const { scope, ratings, validation, input, options } = run;
  const { form } = algorithm;
  const { read, home } = stages;
  const sorted = algorithm.sort(stages);
  const test = testStage(algorithm, run, stages, sorted);
  const heldOut = scope.stage('held-out pairs', { read, home, sorted, test }, (data, ctx) =>
    validation && data.test && ranksHeldOut(algorithm.params, options)
      ? loadedOnce(validation, `${form} held out ${algorithm.params.seed} ${options.rankUsers}`, () =>
          algorithm.heldOut(data, data.test as ValidationPairs, ctx),
        )
      : undefined,
  );
  const facts = scope.stage('look at ratings', { sorted }, (data, ctx) => {
    input.reportDuplicates(data.sorted.duplicates, ctx);
    return loadedOnce(ratings, `${form} facts`, () =>
      inspected(ctx, () => algorithm.facts(data.sorted, ctx)),
    );
  });
  const data = scope.stage('inspected', { read, home, sorted, facts, test }, (found) => found, {
    need: 'none',
  });
  const warnings = scope.stage('warnings', { data }, (found, ctx) => {
    const { duplicates, implicit } = found.data.sorted;
    const problems = findProblems(
      found.data.facts,
      {
        duplicates,
        policy: input.onDuplicates,
        test: found.data.test,
        rank: algorithm.params.rank,
        implicit,
        update: algorithm.updates,
      },
      ctx,
    );
    // These were reported when the columns were found.
    return [...problems, ...unusedRatings(ratings.plan)];
  });
  const judged = scope.stage('means', { data }, (found, ctx) =>
    inspected(ctx, () => algorithm.judge(found.data, ctx)),
  );
  return { data, heldOut, warnings, judged };
}

/** Reads the validation set once the first ratings have been read, and finds its known pairs. */
function testStage<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  { scope, input, validation }: FitRun,
  { begun, read, home }: ReadPhase<Types>,
  sorted: ScopeStage<Types['sorted']>,
): ScopeStage<ValidationPairs | undefined> {
  if (validation === undefined) return constant('validation pairs', undefined);
  const { form } = algorithm;
  // If the validation set is cached between fits, its pairs may be loaded already.
  const pairs = isKept(validation)
    ? constant('validation set', undefined)
    : scope.stage('read validation set', { begun }, (_, ctx) => input.readPairs(validation, ctx));
  const after = algorithm.testsAfterSort ? sorted : constant('sorted', undefined);
  return scope.stage('validation pairs', { read, home, pairs, sorted: after }, (data, ctx) =>
    loadedOnce(validation, `${form} pairs`, async () => {
      using _ = ctx.metrics.begin('test set');
      const found = data.pairs ?? (await input.readPairs(validation, ctx));
      return algorithm.test(data, await keepKnown(found, data.read.indexed, ctx), ctx);
    }),
  );
}

async function inspected<Result>(ctx: ExecutionContext, inspect: () => Promise<Result>): Promise<Result> {
  using _ = ctx.metrics.begin('look at ratings');
  return await inspect();
}
