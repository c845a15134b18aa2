import type { Dataset } from '../../api/dataset.ts';
import type { Model } from '../../api/model.ts';
import { attributeEffects } from '../../api/reports/attribute-effects.ts';
import { itemMap } from '../../api/reports/item-map.ts';
import { sampleUsers } from '../../api/reports/sample-users.ts';
import { actedParams } from '../../api/reports/training-report.ts';
import { isReplayable } from '../../api/run-rows.ts';
import { counted, formatBytes, formatCount } from '../../engine/format.ts';
import type { AlsOptions, ItemNames } from '../../index.ts';
import type { Report, Section, Tile } from '../page/page.ts';
import { errorsSection } from '../page/sections/errors.ts';
import { itemMapSection } from '../page/sections/item-map.ts';
import { planSection } from '../page/sections/plan.ts';
import { ratingsSection } from '../page/sections/ratings.ts';
import { samplesSection } from '../page/sections/samples.ts';
import { leadCurve, type TrainingCourse, trainingSection } from '../page/sections/training.ts';
import { seconds3 } from '../progress/phrases.ts';
import type { HeldOutRanking } from './measured.ts';
import { nameFlags } from './name-flags.ts';
import { bestOf, isImplicit, type TrainedRun } from './training-report.ts';
import { trainingVerdict } from './verdict.ts';

/** A training run for which a page is made. */
export type PageRun = Omit<TrainedRun, 'modelDir' | 'updated'>;

/** Most items on the map, and items in each list of recommendations. */
const MOST_MAPPED = 2000;
const LISTED = 6;

interface PageData {
  readonly train: Dataset;
  /** The held-out ratings. */
  readonly test: Dataset | undefined;
  readonly signal: AbortSignal;
  readonly onBadRows: NonNullable<AlsOptions['onBadRows']>;
  readonly names: ItemNames | undefined;
}

/**
 * The page of a training run. It reads the training and held-out ratings again, if they can be read again.
 */
export async function trainingPage(run: PageRun, data: PageData): Promise<Report> {
  const { model, training, adapter, options } = run;
  const { train, test, signal, onBadRows, names } = data;
  const { algorithm, params, iterations, bestIteration, baselines, warnings } = training;
  const best = bestOf(training);
  const errors =
    test === undefined || !isReplayable(test) || isImplicit(training) || best?.testRmse === undefined
      ? undefined
      : (await model.evaluate(test, { breakdown: true, onBadRows, signal })).breakdown;
  const ratings = ratingsSection({ users: model.userCounts, items: model.itemCounts });
  const samples = samplesSection(await sampleUsers(model, train, { n: LISTED, onBadRows, signal }), names);
  const map = itemMap(model, MOST_MAPPED);
  const course: TrainingCourse = {
    called: algorithm === 'sgd' ? 'epoch' : 'iteration',
    iterations,
    bestIteration,
    baselines: isImplicit(training) ? undefined : baselines,
  };
  return {
    title: `Training: ${algorithm.toUpperCase()}${isImplicit(training) ? ', implicit' : ''}, rank ${params.rank}, ${formatCount(training.ratings)} ratings`,
    adapter,
    warnings: warnings.map(({ text }) => nameFlags(text, options)),
    lead: { verdict: trainingVerdict(training), tiles: tilesOf(run), charts: leadCurve(course) },
    sections: [
      ...(samples ? [samples] : []),
      ...(map ? [itemMapSection(map, model.itemCount, names)] : []),
      trainingSection(course),
      ...(training.ranking ? [rankingSection(training.ranking)] : []),
      ...(errors ? [errorsSection(errors)] : []),
      ...(ratings ? [ratings] : []),
      ...attributeSections(model),
      summarySection(run),
      {
        heading: 'Parameters',
        text: 'Parameters that had an effect in this run.',
        facts: actedParams(training).map(
          ([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)] as const,
        ),
      },
      planSection(training.plan),
    ],
  };
}

/** The numbers of the first screen. */
function tilesOf(run: PageRun): Tile[] {
  const { model, training, totalSeconds, peakRssBytes } = run;
  const { algorithm, iterations, bestIteration, seconds, baselines } = training;
  const best = bestOf(training);
  const error = isImplicit(training) ? undefined : best?.testRmse;
  return [
    error === undefined
      ? (rankingTile(training.ranking) ??
        (best?.trainRmse === undefined
          ? undefined
          : { name: 'train RMSE', value: best.trainRmse.toFixed(4) }))
      : {
          name: 'test RMSE',
          value: error.toFixed(4),
          remark: baselines && `means ${baselines.dampedMeans.rmse.toFixed(4)}`,
        },
    {
      name: algorithm === 'sgd' ? 'epoch of the model' : 'iteration of the model',
      value: `${bestIteration} of ${iterations.length}`,
      remark: lowestText(run),
    },
    { name: 'time', value: seconds3(totalSeconds), remark: `training ${seconds3(seconds.train)}` },
    { name: 'peak memory', value: formatBytes(peakRssBytes) },
    {
      name: 'ratings',
      value: formatCount(training.ratings),
      remark: `${counted(model.userCount, 'user')}, ${counted(model.itemCount, 'item')}`,
    },
  ].filter((tile) => tile !== undefined);
}

/** A smaller rise of the test error is not reported. */
const LEAST_RISE = 0.0005;

/** The iteration with the lowest test error, if it is not the model's. */
function lowestText({ training: { algorithm, iterations, bestIteration } }: PageRun): string | undefined {
  const measured = iterations.filter(({ testRmse }) => testRmse !== undefined);
  if (measured.length === 0) return undefined;
  const lowest = measured.reduce((least, one) => ((one.testRmse ?? 0) < (least.testRmse ?? 0) ? one : least));
  if (lowest.iteration === bestIteration) return 'the lowest test RMSE';
  const own =
    measured.find(({ iteration }) => iteration === bestIteration)?.testRmse ?? Number.POSITIVE_INFINITY;
  return own < (1 + LEAST_RISE) * (lowest.testRmse ?? 0)
    ? undefined
    : `the lowest test RMSE: ${algorithm === 'sgd' ? 'epoch' : 'iteration'} ${lowest.iteration}`;
}

function rankingTile(ranking: HeldOutRanking | undefined): Tile | undefined {
  const [first] = Object.entries(ranking?.metrics ?? {});
  return first === undefined
    ? undefined
    : {
        name: first[0],
        value: first[1].toFixed(4),
        remark: `popularity ${ranking?.popularity[first[0]].toFixed(4)}`,
      };
}

function rankingSection({ metrics, popularity, users, availableUsers }: HeldOutRanking): Section {
  const rows = Object.keys(metrics).map((name) => [
    name,
    metrics[name].toFixed(4),
    popularity[name].toFixed(4),
  ]);
  const text = `Held-out ratings in rankings of all items that a user has not rated: means over ${formatCount(users)}${availableUsers > users ? ` of ${formatCount(availableUsers)}` : ''} users.`;
  return {
    heading: 'Rankings',
    text,
    tables: [{ head: ['metric', 'model', 'most popular items for everyone'], rows }],
  };
}

/** Attributes in a section of the report. */
const MOST_SHOWN = 20;

function attributeSections(model: Model): Section[] {
  const tables = (['item', 'user'] as const).flatMap((side) => {
    const effects = attributeEffects(model, side, MOST_SHOWN);
    const rows = effects?.map(({ column, value, effect }) => [column, value, effect.toPrecision(3)]);
    return rows ? [{ title: `of ${side}s`, head: ['attribute', 'value', 'effect'], rows, numbers }] : [];
  });
  const text =
    'The attributes that move predictions most: how much the prediction changes for one without ratings that ' +
    'has the value, as the root mean square over the other side; of numbers, by one standard deviation.';
  return tables.length === 0 ? [] : [{ heading: 'Attributes', text, tables }];
}

const numbers = (column: number) => column === 2;

function summarySection(run: PageRun): Section {
  const { model, training, peakRssBytes } = run;
  const { baselines, testPairs, coldPairs, duplicates, badRows, seconds } = training;
  const best = bestOf(training);
  const besideMeans = (of: 'rmse' | 'mae', own: number | undefined) => {
    if (own === undefined || isImplicit(training)) return undefined;
    const means =
      baselines &&
      ` (the mean: ${baselines.mean[of].toFixed(4)}, damped means: ${baselines.dampedMeans[of].toFixed(4)})`;
    return own.toFixed(4) + (means ?? '');
  };
  return {
    heading: 'Summary',
    facts: [
      ['test RMSE', besideMeans('rmse', best?.testRmse)],
      ['test MAE', besideMeans('mae', best?.testMae)],
      ['train RMSE', best?.trainRmse?.toFixed(4)],
      ...Object.entries(best?.testMetrics ?? {}).map(
        ([name, value]) => [`test ${name}`, value.toFixed(4)] as const,
      ),
      ['users', formatCount(model.userCount)],
      ['items', formatCount(model.itemCount)],
      ['ratings', formatCount(training.ratings)],
      ['repeated pairs', duplicates === 0 ? undefined : formatCount(duplicates)],
      ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
      [
        'test pairs',
        testPairs === undefined
          ? undefined
          : `${formatCount(testPairs)}, of which ${formatCount(coldPairs ?? 0)} are cold`,
      ],
      ['training', `${seconds.train.toFixed(2)} s, after ${seconds.load.toFixed(2)} s of loading`],
      ['memory', `at most ${formatBytes(peakRssBytes)} of the process`],
    ],
  };
}
