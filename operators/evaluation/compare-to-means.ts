import type { Baselines } from './baselines.ts';
import type { TrainingWarning } from './rating-warnings.ts';

/** A trained model, as far as its error is to be judged. */
export interface JudgedModel {
  readonly params: { readonly rank: number; readonly regParam: number; readonly biases: boolean; readonly maxIter: number; readonly earlyStop?: number };
  readonly trainRmse: number;
  readonly testRmse: number;
  readonly baselines: Baselines;
}

/** A warning where a model's test RMSE is not below that of damped means: the reason by its training error, and parameters to try. */
export function compareToMeans({ params, trainRmse, testRmse, baselines }: JudgedModel): TrainingWarning | undefined {
  const { mean, dampedMeans } = baselines;
  // Where means are perfect, all ratings are equal, which another warning tells.
  if (testRmse < dampedMeans.rmse || dampedMeans.rmse === 0) return undefined;
  const [worse, by] = testRmse < mean.rmse ? ['no better than damped means of items and users', dampedMeans.rmse] : ['no better than the mean rating', mean.rmse];
  const { rank, regParam, biases, maxIter, earlyStop } = params;
  const overfits = trainRmse < dampedMeans.rmse;
  const more = Number((regParam > 0 ? 2 * regParam : 0.1).toPrecision(3));
  const advice = [
    ...(biases ? [] : ['biases: true']),
    ...(overfits ? [`regParam: ${more}`, ...(rank > 2 ? [`rank: ${Math.ceil(rank / 2)}`] : []), ...(earlyStop === undefined ? ['earlyStop: 2'] : [])] : [`maxIter: ${2 * maxIter}`, ...(regParam > 0 ? [`regParam: ${Number((regParam / 2).toPrecision(3))}`] : [])]),
  ];
  const reason = overfits ? `it fits the training ratings (RMSE ${trainRmse.toFixed(4)}) and not others` : `it has not yet fitted the training ratings (RMSE ${trainRmse.toFixed(4)})`;
  return { code: 'no-better-than-means', text: `the model's test RMSE, ${testRmse.toFixed(4)}, is ${worse}, ${by.toFixed(4)}: ${reason}. Try ${either(advice)}` };
}

/** "a", "a or b", "a, b or c" */
function either(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join() : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
