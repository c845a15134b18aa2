import type { Dataset } from '../../api/dataset.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { BadRowPolicy } from '../../index.ts';
import type { Report } from '../page/section.ts';
import { errorsSection } from '../page/sections/errors.ts';
import { planSection } from '../page/sections/plan.ts';
import { ratingsSection } from '../page/sections/ratings.ts';
import { trainingSection } from '../page/sections/training.ts';
import { nameFlags } from './name-flags.ts';
import type { TrainedRun } from './training-report.ts';

/** The page of a training run. The errors on held-out ratings are measured for it, which reads those ratings once more. */
export async function trainingPage({ model, training, adapter, options, peakRssBytes }: Omit<TrainedRun, 'totalSeconds' | 'modelDir' | 'updated'>, test: Dataset | undefined, { signal, onBadRows }: { readonly signal: AbortSignal; readonly onBadRows: BadRowPolicy }): Promise<Report> {
  const { algorithm, params, iterations, bestIteration, baselines, testPairs, coldPairs, warnings } = training;
  const best = iterations.find(({ iteration }) => iteration === bestIteration);
  const implicit = algorithm === 'als' && params.implicitPrefs;
  const errors = test === undefined || implicit || best?.testRmse === undefined ? undefined : (await model.evaluate(test, { breakdown: true, onBadRows, signal })).breakdown;
  const ratings = ratingsSection({ users: model.userCounts, items: model.itemCounts });
  const beside = (value: number | undefined) => (value === undefined ? undefined : ` (the mean: ${baselines?.mean.rmse.toFixed(4)}, damped means: ${baselines?.dampedMeans.rmse.toFixed(4)})`);
  return {
    title: `Training: ${algorithm.toUpperCase()}, rank ${params.rank}, ${formatCount(training.ratings)} ratings`,
    adapter,
    warnings: warnings.map(({ text }) => nameFlags(text, options)),
    sections: [
      {
        heading: 'Summary',
        facts: [
          ['test RMSE', best?.testRmse && !implicit ? `${best.testRmse.toFixed(4)}${baselines ? beside(best.testRmse) : ''}` : test === undefined ? 'no ratings were held out: --test-fraction or --test measure the error on ratings that are not trained on' : undefined],
          ['train RMSE', best?.trainRmse?.toFixed(4)],
          ...Object.entries(best?.testMetrics ?? {}).map(([name, value]) => [`test ${name}`, value.toFixed(4)] as const),
          ['users', formatCount(model.userCount)],
          ['items', formatCount(model.itemCount)],
          ['ratings', formatCount(training.ratings)],
          ['test pairs', testPairs === undefined ? undefined : `${formatCount(testPairs)}, of which ${formatCount(coldPairs ?? 0)} are cold`],
          ['training', `${training.seconds.train.toFixed(2)} s, after ${training.seconds.load.toFixed(2)} s of loading`],
          ['memory', `at most ${formatBytes(peakRssBytes)} of the process`],
        ],
      },
      { heading: 'Parameters', facts: Object.entries(params).map(([name, value]) => [name, value === undefined ? undefined : typeof value === 'object' ? JSON.stringify(value) : String(value)]) },
      trainingSection({ called: algorithm === 'sgd' ? 'epoch' : 'iteration', iterations, bestIteration, baselines: implicit ? undefined : baselines }),
      ...(errors ? [errorsSection(errors)] : []),
      ...(ratings ? [ratings] : []),
      planSection(training.plan),
    ],
  };
}
