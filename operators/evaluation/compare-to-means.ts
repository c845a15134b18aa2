import { commonParams, type CommonParams } from '../params/common.ts';
import type { SgdParams } from '../sgd/params.ts';
import type { Baselines } from './baselines.ts';
import type { TrainingWarning } from './rating-warnings.ts';

/**
 * The largest default damping of biases. If a model damps its biases more, they are damped more than the
 * means that the model is compared with.
 */
const MOST_DAMPING = Math.max(...[commonParams.biasDamping.fallback].flat());

/** Errors of a model and of means on the same pairs. */
interface Errors {
  readonly testRmse: number;
  readonly baselines: Baselines;
}

/** A model about which nothing is known except whether it has biases. */
export interface JudgedErrors extends Errors {
  readonly biases: boolean;
}

/** A model that was just trained, so that its parameters and its error on the training ratings are known. */
export interface JudgedModel extends Errors {
  readonly params: Pick<
    CommonParams,
    'rank' | 'regParam' | 'biases' | 'maxIter' | 'earlyStop' | 'regOffset' | 'biasDamping'
  > &
    Pick<SgdParams, 'regParamUsers' | 'regParamItems'>;
  readonly trainRmse: number;
}

/**
 * A warning if a model's RMSE is not below the RMSE of damped means. If the parameters of the training are
 * known, it recommends other values.
 */
export function compareToMeans(judged: JudgedErrors | JudgedModel): TrainingWarning | undefined {
  const { testRmse, baselines } = judged;
  const { mean, dampedMeans } = baselines;
  // If the means have an error of 0, all ratings are equal; another warning reports that.
  if (testRmse < dampedMeans.rmse || dampedMeans.rmse === 0) return undefined;
  const [worse, by] =
    testRmse < mean.rmse
      ? ['no better than damped means of items and users', dampedMeans.rmse]
      : ['no better than the mean rating', mean.rmse];
  const text = `the model's test RMSE, ${testRmse.toFixed(4)}, is ${worse}, ${by.toFixed(4)}`;
  return {
    code: 'no-better-than-means',
    text:
      'params' in judged
        ? `${text}: ${reasonAndAdvice(judged)}`
        : `${text}. Train it with other parameters: ${either([...(judged.biases ? [] : ['biases']), 'more regularization', 'a smaller rank'])}`,
  };
}

/**
 * Completes the warning. If the training error is below the damped means' test error, the model overfits;
 * otherwise it was trained for too short or is regularized too much.
 */
function reasonAndAdvice({ params, trainRmse, baselines: { dampedMeans } }: JudgedModel): string {
  const { rank, regParam, biases, maxIter, earlyStop, regOffset, biasDamping, regParamUsers, regParamItems } =
    params;
  const overfits = trainRmse < dampedMeans.rmse;
  const set = (name: string, value: number, when: boolean) =>
    when ? [`${name}: ${Number(value.toPrecision(3))}`] : [];
  // Parameters that set λ: regParam, or its two replacements for users and items, which exclude regParam.
  const lambdas = Object.entries(
    regParamUsers !== undefined && regParamItems !== undefined
      ? { regParamUsers, regParamItems }
      : { regParam },
  );
  const damping = Math.max(...[biasDamping].flat());
  const advice = [
    ...(biases ? set('biasDamping', MOST_DAMPING, damping > MOST_DAMPING) : ['biases: true']),
    ...(overfits
      ? [
          ...(biases
            ? set('regOffset', 2 * regOffset || commonParams.regOffset.fallback, true)
            : set('regOffset', 2 * regOffset, regOffset > 0)),
          ...lambdas.flatMap(([name, lambda]) => set(name, 2 * lambda || 0.1, true)),
          ...set('rank', Math.ceil(rank / 2), rank > 2),
          ...set('earlyStop', 2, earlyStop === undefined),
        ]
      : [
          ...set('regOffset', regOffset / 2, regOffset > 0),
          ...lambdas.flatMap(([name, lambda]) => set(name, lambda / 2, lambda > 0)),
          ...set('maxIter', 2 * maxIter, earlyStop === undefined),
        ]),
  ];
  const reason = overfits
    ? `it fits the training ratings (RMSE ${trainRmse.toFixed(4)}) and not others`
    : `it has not yet fitted the training ratings (RMSE ${trainRmse.toFixed(4)})`;
  return `${reason}. Try ${either(advice)}`;
}

/** "a", "a or b", "a, b or c" */
function either(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join() : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
