import { formatBytes, formatCount } from '../../engine/format.ts';
import type { Evaluation, Trial, TrainingReport } from '../../index.ts';
import type { Verdict } from '../page/page.ts';
import { type Baselines, type MetricValues, besideMeans } from './measured.ts';

/** Smaller relative differences count as equal. */
const LEAST_DIFFERENCE = 0.0005;

/** The pairs over which an error was measured. */
interface Measured {
  readonly pairs: number;
  readonly coldPairs: number;
  readonly kind: 'ratings' | 'held-out ratings';
}

/** Compares an RMSE with means of users and items, over the same pairs. */
export function errorVerdict(
  rmse: number,
  baselines: Baselines | undefined,
  { pairs, coldPairs, kind }: Measured,
): Verdict {
  const known = formatCount(pairs - coldPairs);
  const number = coldPairs === 0 ? known : `${known} of ${formatCount(pairs)}`;
  const detail = `RMSE ${besideMeans('rmse', rmse, baselines)}; on ${number} ${kind}.`;
  const means = baselines && simplest(baselines);
  if (means === undefined)
    return { tone: 'plain', text: `RMSE ${rmse.toFixed(4)} on ${kind}`, detail: `${number} pairs.` };
  const gain = 1 - rmse / means.rmse;
  const than = `than ${means.name}`;
  if (Math.abs(gain) < LEAST_DIFFERENCE) return { tone: 'bad', text: `No better ${than}`, detail };
  const percent = `${(100 * Math.abs(gain)).toFixed(1)} %`;
  return gain > 0
    ? { tone: 'good', text: `${percent} better ${than}`, detail }
    : { tone: 'bad', text: `${percent} worse ${than}`, detail };
}

/** The better of the simple predictors; undefined if its error is 0. */
function simplest({
  mean,
  dampedMeans,
}: Baselines): { readonly name: string; readonly rmse: number } | undefined {
  const all = [
    { name: 'means of users and items', rmse: dampedMeans.rmse },
    { name: 'the mean rating', rmse: mean.rmse },
  ];
  const [least] = all.filter(({ rmse }) => rmse > 0).sort((a, b) => a.rmse - b.rmse);
  return least;
}

/** Compares ranking metrics with recommending the most popular items to everyone. */
export function rankingVerdict(
  metrics: MetricValues,
  popularity: MetricValues | undefined,
  users: number,
): Verdict {
  const name = Object.keys(metrics).find((one) => one.startsWith('ndcg')) ?? Object.keys(metrics)[0];
  if (name === undefined || !Number.isFinite(metrics[name]))
    return { tone: 'plain', text: 'No ranking metric: no user is left to rank' };
  const [own, popular] = [metrics[name], popularity?.[name]];
  const over = `over ${formatCount(users)} users`;
  if (popular === undefined || !Number.isFinite(popular))
    return { tone: 'plain', text: `${name} ${own.toFixed(4)}`, detail: `A mean ${over}.` };
  const detail = `${name} ${own.toFixed(4)}; the most popular items for everyone ${popular.toFixed(4)}; ${over}.`;
  const ratio = own / popular;
  if (Math.abs(own - popular) < LEAST_DIFFERENCE * popular || own === popular)
    return { tone: 'bad', text: 'No better than popularity', detail };
  if (own > popular)
    return {
      tone: 'good',
      text: Number.isFinite(ratio)
        ? `${timesText(ratio)} times as good as popularity`
        : 'Better than popularity',
      detail,
    };
  return { tone: 'bad', text: `Worse than popularity: ${ratio.toFixed(2)} times as good`, detail };
}

/** "1.85", "11.2" */
function timesText(ratio: number): string {
  return ratio < 100 ? ratio.toPrecision(3) : ratio.toFixed(0);
}

/** The result of a training run. */
export function trainingVerdict(training: TrainingReport): Verdict {
  const { iterations, bestIteration, testPairs, coldPairs = 0, baselines } = training;
  const implicit = training.algorithm === 'als' && training.params.implicitPrefs;
  const best = iterations.find(({ iteration }) => iteration === bestIteration);
  if (testPairs === undefined) return unmeasured(implicit, best?.trainRmse);
  if (testPairs === coldPairs)
    return {
      tone: 'bad',
      text: 'Not measured: the model knows no pair of the held-out ratings',
      detail: `${formatCount(testPairs)} pairs are held out; each has a user or an item without training ratings.`,
    };
  if (!implicit && best?.testRmse !== undefined)
    return errorVerdict(best.testRmse, baselines, { pairs: testPairs, coldPairs, kind: 'held-out ratings' });
  if (training.ranking !== undefined)
    return rankingVerdict(training.ranking.metrics, training.ranking.popularity, training.ranking.users);
  const [metric] = Object.entries(best?.testMetrics ?? {});
  if (metric !== undefined)
    return {
      tone: 'plain',
      text: `${metric[0]} ${metric[1].toFixed(4)} on held-out ratings`,
      detail: `${formatCount(testPairs)} pairs.`,
    };
  return {
    tone: 'plain',
    text: 'Not measured: implicit data have no test error',
    detail: 'factorflow evaluate --ranking compares rankings with popularity.',
  };
}

function unmeasured(implicit: boolean, trainRmse: number | undefined): Verdict {
  const own =
    trainRmse === undefined
      ? ''
      : `The RMSE on the training ratings is ${trainRmse.toFixed(4)}; on new ratings it is larger. `;
  const measure = implicit
    ? '--test-fraction 0.1 holds ratings out, which are ranked next to popularity.'
    : '--test-fraction 0.1 holds ratings out and measures on them.';
  return { tone: 'plain', text: 'Not measured: no ratings were held out', detail: `${own}${measure}` };
}

/** The result of `evaluate` on ratings. */
export function evaluationVerdict({ rmse, baselines, pairs, coldPairs }: Evaluation): Verdict {
  if (Number.isFinite(rmse)) return errorVerdict(rmse, baselines, { pairs, coldPairs, kind: 'ratings' });
  return {
    tone: 'bad',
    text:
      pairs === coldPairs
        ? 'Not measured: the model knows no pair'
        : 'Not measured: a prediction is NaN or infinite',
  };
}

/** The result of a search. */
export function searchVerdict(best: Trial, trials: number, metric: string): Verdict {
  const text = `Trial ${best.number} is the best of ${formatCount(trials)}: ${metric} ${best.value.toFixed(4)}`;
  if (best.ranking !== undefined) {
    const {
      tone,
      text: compared,
      detail = '',
    } = rankingVerdict(best.ranking.metrics, best.ranking.popularity, best.ranking.users);
    return { tone, text, detail: `${compared}: ${detail}` };
  }
  const means = metric === 'rmse' && best.baselines ? simplest(best.baselines) : undefined;
  if (means === undefined) return { tone: 'plain', text };
  const gain = 1 - best.value / means.rmse;
  const percent = `${(100 * Math.abs(gain)).toFixed(1)} % ${gain > 0 ? 'better' : 'worse'}`;
  return {
    tone: gain > LEAST_DIFFERENCE ? 'good' : 'bad',
    text,
    detail: `${percent} than ${means.name} (${means.rmse.toFixed(4)}).`,
  };
}

/** The memory of a plan; if a plan exists, it fits. */
export function planVerdict(memory: Readonly<Record<string, number>>): Verdict {
  const places = Object.entries(memory).map(([place, bytes]) => `${formatBytes(bytes)} at ${place}`);
  return {
    tone: 'plain',
    text: `It fits: at most ${places.join(', ')}`,
    detail: 'Memory for ratings and factors, as planned.',
  };
}
