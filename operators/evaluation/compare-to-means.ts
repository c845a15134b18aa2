import type { Baselines } from './baselines.ts';
import type { TrainingWarning } from './rating-warnings.ts';

/** The errors of a model and of means over the same pairs. */
interface Errors {
  readonly testRmse: number;
  readonly baselines: Baselines;
}

/** A model of which no more is known than that it has biases. */
export interface JudgedErrors extends Errors {
  readonly biases: boolean;
}

/** A model that was just trained. */
export interface JudgedModel extends Errors {
  readonly params: { readonly rank: number; readonly regParam: number; readonly biases: boolean; readonly maxIter: number; readonly earlyStop?: number; readonly regOffset?: number };
  readonly trainRmse: number;
}

/** A warning where a model's RMSE is not below that of damped means, with parameters to try where the training is known. */
export function compareToMeans(judged: JudgedErrors | JudgedModel): TrainingWarning | undefined {
  const { testRmse, baselines } = judged;
  const { mean, dampedMeans } = baselines;
  // Where means are perfect, all ratings are equal, which another warning tells.
  if (testRmse < dampedMeans.rmse || dampedMeans.rmse === 0) return undefined;
  const [worse, by] = testRmse < mean.rmse ? ['no better than damped means of items and users', dampedMeans.rmse] : ['no better than the mean rating', mean.rmse];
  const text = `the model's test RMSE, ${testRmse.toFixed(4)}, is ${worse}, ${by.toFixed(4)}`;
  return { code: 'no-better-than-means', text: 'params' in judged ? `${text}: ${reasonAndAdvice(judged)}` : `${text}. Train it with other parameters: ${either([...(judged.biases ? [] : ['biases']), 'more regularization', 'a smaller rank'])}` };
}

/** The reason by the training error. */
function reasonAndAdvice({ params, trainRmse, baselines: { dampedMeans } }: JudgedModel): string {
  const { rank, regParam, biases, maxIter, earlyStop, regOffset = 0 } = params;
  const overfits = trainRmse < dampedMeans.rmse;
  const set = (name: string, value: number, when: boolean) => (when ? [`${name}: ${Number(value.toPrecision(3))}`] : []);
  const advice = [
    ...(biases ? [] : ['biases: true']),
    ...(overfits
      ? [...set('regParam', 2 * regParam || 0.1, true), ...set('regOffset', 2 * regOffset, regOffset > 0), ...set('rank', Math.ceil(rank / 2), rank > 2), ...set('earlyStop', 2, earlyStop === undefined)]
      : [...set('maxIter', 2 * maxIter, true), ...set('regParam', regParam / 2, regParam > 0), ...set('regOffset', regOffset / 2, regOffset > 0)]),
  ];
  const reason = overfits ? `it fits the training ratings (RMSE ${trainRmse.toFixed(4)}) and not others` : `it has not yet fitted the training ratings (RMSE ${trainRmse.toFixed(4)})`;
  return `${reason}. Try ${either(advice)}`;
}

/** "a", "a or b", "a, b or c" */
function either(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join() : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
