import type { ScopeStage } from '../../../engine/run/scope.ts';
import { ratedRows } from '../../histories.ts';
import type { Model } from '../../model.ts';
import { rankHeldOut } from '../rank-held-out.ts';
import { trainedModel } from '../trained-model.ts';
import type { ChosenPlan, FitAlgorithm, FitTypes } from './algorithm.ts';
import type { FitRun } from './fit-run.ts';
import type { InspectPhase } from './inspect.ts';
import type { TrainPhase } from './train.ts';

/** Ranks the held-out pairs by the trained factors, and creates the model with its report. */
export function finishPhase<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  { scope, ratings, input, options, checkpoints, started }: FitRun,
  { data, heldOut, warnings, judged }: InspectPhase<Types>,
  chosen: ScopeStage<ChosenPlan<Types>>,
  trained: ScopeStage<TrainPhase>,
): ScopeStage<Model> {
  const { session } = ratings;
  const ranked = scope.stage('rank held-out pairs', { heldOut, trained }, async (found, ctx) => {
    if (found.heldOut === undefined) return undefined;
    const ranking = await rankHeldOut(found.heldOut, found.trained.result, options, ctx);
    session.trained();
    return ranking;
  });
  return scope.stage('model', { data, warnings, judged, chosen, trained, ranked }, (found, ctx) => {
    const { read, sorted, test } = found.data;
    const { result, loaded } = found.trained;
    return trainedModel(
      {
        ...algorithm.model(found.data, found.chosen),
        session,
        input,
        users: read.indexed.users,
        items: read.indexed.items,
        ratings: sorted.byRow.ratings,
        rated: ratedRows(ratings, input),
        duplicates: sorted.duplicates,
        test: test && { ...test, baselines: found.judged.baselines },
        findings: { warnings: found.warnings, means: found.judged.means },
        result,
        resumedFrom: checkpoints?.resumedFrom,
        started,
        loaded,
        ranked: found.ranked,
        tuning: options.continued?.tuning,
      },
      ctx,
    );
  });
}
