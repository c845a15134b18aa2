import { CapacityError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { compareToPopularity } from '../../operators/evaluation/model-warnings.ts';
import type { HeldOutPairs, HeldOutRanking } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import type { TrainingWarning } from '../../operators/evaluation/rating-warnings.ts';
import type { EndedTraining, RankedTraining } from './ended-training.ts';
import type { ContinuedFit } from './continued-fit.ts';

/**
 * True if held-out pairs are ranked after training. By default only for implicit data. In a trial of a
 * search, the search decides.
 */
export function ranksHeldOut(
  params: object,
  { ranking, continued }: Pick<ContinuedFit, 'ranking' | 'continued'>,
): boolean {
  if (continued !== undefined) return continued.ranks !== undefined;
  return ranking ?? ('implicitPrefs' in params && params.implicitPrefs === true);
}

/**
 * Ranks held-out pairs by a trained model. If the device has no room for that, warns instead of losing the
 * model.
 */
export async function rankHeldOut(
  pairs: HeldOutPairs,
  result: EndedTraining['result'],
  { continued }: Pick<ContinuedFit, 'continued'>,
  ctx: ExecutionContext,
): Promise<RankedTraining | undefined> {
  const best = result.iterations.find(({ iteration }) => iteration === result.bestIteration);
  if (result.lost !== undefined || continued?.ranks?.(best) === false) return undefined;
  const started = performance.now();
  try {
    const ranking = await pairs.rank(result.sides, ctx);
    return { ranking, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    ctx.events({ type: 'warning', text: `the held-out pairs were not ranked: ${error.summary}` });
    return undefined;
  }
}

/** Warns of a model that ranks no better than popularity. */
export function judgeRanking(
  { algorithm, params }: EndedTraining['about'],
  ranking: HeldOutRanking,
): TrainingWarning[] {
  const training = algorithm === 'als' ? params : { implicitPrefs: false };
  const verdict = compareToPopularity({ ...ranking, training });
  return verdict ? [verdict] : [];
}
