import type { Model } from '../../api/model.ts';
import type { TrainingReport } from '../../api/reports/training-report.ts';
import type { WriteSummary } from '../output/write-output.ts';
import type { Baselines } from './measured.ts';
import { comparedMemory } from '../../api/reports/compared-memory.ts';
import { counted, formatBytes, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../index.ts';
import type { CommandResult } from '../commands/command.ts';
import type { Options } from '../options/option.ts';
import { besideMeans, isVerdict } from './beside-means.ts';
import { facts } from './facts.ts';
import { heldOutRankingFacts, heldOutRankingJson } from './held-out-ranking.ts';
import { nameFlags } from './name-flags.ts';
import { seconds3 } from '../progress/phrases.ts';

export interface TrainedRun {
  readonly model: Model;
  readonly training: TrainingReport;
  /** Name of the session's GPU; null without one. */
  readonly adapter: string | null;
  readonly modelDir: string;
  /** True where training went on from a model. */
  readonly updated: boolean;
  /** True with --resume. */
  readonly resume?: boolean;
  /** The held-out ratings, where they were written. */
  readonly heldOut?: WriteSummary | undefined;
  /** The flags of the command, for advice. */
  readonly options: Options;
  readonly totalSeconds: number;
  readonly peakRssBytes: number;
}

/** The result of `train`. */
export function trainingResult(run: TrainedRun): CommandResult {
  return {
    json: {
      command: 'train',
      ...trainingJson(run),
      model: run.modelDir,
      ...(run.heldOut ? { testOutput: run.heldOut.path } : {}),
    },
    text: trainingText(run),
  };
}

/** The report of `--json`, without the command and the model's folder. */
export function trainingJson({
  model,
  training,
  adapter,
  resume,
  options,
  totalSeconds,
  peakRssBytes,
}: Omit<TrainedRun, 'modelDir' | 'updated'>): JsonObject {
  const { kind } = training.plan.devices[0];
  const best = bestOf(training);
  return {
    algorithm: training.algorithm,
    device: kind,
    adapter: kind === 'gpu' ? adapter : null,
    users: model.userCount,
    items: model.itemCount,
    ratings: training.ratings,
    badRows: training.badRows,
    // Null where there was no checkpoint.
    ...(resume ? { resumedFrom: training.resumedFrom ? { ...training.resumedFrom } : null } : {}),
    duplicates: training.duplicates,
    iterations: training.iterations.map(
      ({ iteration, seconds, loss, trainRmse, fromSolve, testRmse, testMetrics }) => ({
        iteration,
        seconds,
        loss,
        trainRmse,
        ...(fromSolve ? { fromSolve } : {}),
        testRmse,
        ...(testMetrics ? { testMetrics: { ...testMetrics } } : {}),
      }),
    ),
    // A test RMSE is undefined when the model knows no pair of the test set.
    ...(training.testPairs === undefined
      ? {}
      : {
          testRmse: best?.testRmse ?? null,
          testMae: best?.testMae ?? null,
          coldPairs: training.coldPairs,
          testPairs: training.testPairs,
          baselines: training.baselines ?? null,
          ranking: heldOutRankingJson(training.ranking),
        }),
    warnings: training.warnings.map(({ code, text }) => ({ code, text: nameFlags(text, options) })),
    seconds: { ...training.seconds, total: totalSeconds },
    ...partitionsOf(training.plan),
    memory: comparedMemory(training.plan),
    peakRssBytes,
  };
}

/** p and q of each half-iteration, its places and the tasks at each, of ALS in more parts than one. */
function partitionsOf({ round }: TrainingReport['plan']): JsonObject {
  const sides = (['users', 'items'] as const).flatMap((side) => {
    const stage = round.find(({ name }) => name === `update-${side}`);
    if (stage?.partitions === undefined) return [];
    const places = [...new Set(stage.at)];
    return [
      [
        side,
        {
          ...stage.partitions,
          places,
          tasks: Math.ceil(stage.at.length / places.length) * (stage.tasks ?? 1),
        },
      ] as const,
    ];
  });
  return sides.some(([, { p, q }]) => p * q > 1) ? { partitions: Object.fromEntries(sides) } : {};
}

function trainingText({
  model,
  training,
  modelDir,
  updated,
  resume,
  heldOut,
  options,
  totalSeconds,
  peakRssBytes,
}: TrainedRun): string {
  const {
    iterations,
    bestIteration,
    params,
    seconds,
    testPairs,
    coldPairs,
    duplicates,
    badRows,
    baselines,
    warnings,
  } = training;
  const best = bestOf(training);
  const implicit = training.algorithm === 'als' && training.params.implicitPrefs;
  const kept =
    bestIteration === iterations.length
      ? ''
      : `, the model is that of ${training.algorithm === 'sgd' ? 'epoch' : 'iteration'} ${bestIteration}`;
  return [
    `${updated ? 'Updated by' : 'Trained'} ${training.algorithm.toUpperCase()}, rank ${params.rank}, λ ${lambdaText(training)}${implicit ? `, α ${training.params.alpha} (implicit)` : ''}: ${counted(iterations.length, training.algorithm === 'sgd' ? 'epoch' : 'iteration')} in ${seconds3(seconds.train - (seconds.validation ?? 0))}${kept}`,
    facts([
      ['users', formatCount(model.userCount)],
      ['items', formatCount(model.itemCount)],
      [
        'ratings',
        formatCount(training.ratings) +
          (duplicates > 0
            ? ` (${formatCount(duplicates)} ${duplicates === 1 ? 'repeats' : 'repeat'} an earlier pair)`
            : ''),
      ],
      ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
      ['resumed', resume ? resumedText(training) : undefined],
      ['train RMSE', best?.trainRmse?.toFixed(4)],
      [
        'test RMSE',
        testPairs === undefined || implicit
          ? undefined
          : testError('rmse', best?.testRmse, testPairs, baselines),
      ],
      [
        'test MAE',
        testPairs === undefined || implicit
          ? undefined
          : testError('mae', best?.testMae, testPairs, baselines),
      ],
      ...Object.entries(best?.testMetrics ?? {})
        .filter(([name]) => training.ranking === undefined || !(name in training.ranking.metrics))
        .map(([name, value]) => [`test ${name}`, value.toFixed(4)] as const),
      ...heldOutRankingFacts(training.ranking),
      [
        'test error',
        testPairs === undefined ||
        !implicit ||
        best?.testMetrics !== undefined ||
        training.ranking !== undefined
          ? undefined
          : `none: ${testPairs === coldPairs ? 'the model knows no pair' : 'evaluate --ranking measures models of implicit data'}`,
      ],
      ['test pairs', testPairs === undefined ? undefined : formatCount(testPairs)],
      ['cold pairs', coldPairs === undefined ? undefined : `${formatCount(coldPairs)} (not averaged in)`],
      [
        'time',
        `${seconds3(totalSeconds)} in all, ${seconds3(seconds.load)} of it loading${validationText(seconds)}; at most ${formatBytes(peakRssBytes)} of memory`,
      ],
      ['model', modelDir],
      ['held out', heldOut && `${counted(heldOut.rows, 'rating')}, ${heldOut.path}`],
    ]),
    ...warnings.filter(isVerdict).map(({ text }) => `warning: ${nameFlags(text, options)}`),
  ].join('\n');
}

/** ", 0.43 s validation and 0.20 s ranking" of a run with held-out ratings. */
function validationText({ validation, ranking }: TrainingReport['seconds']): string {
  if (validation === undefined) return '';
  return `, ${seconds3(validation)} validation${ranking === undefined ? '' : `, ${seconds3(ranking)} ranking`}`;
}

function resumedText({ resumedFrom }: TrainingReport): string {
  return resumedFrom === undefined
    ? 'no checkpoint was there, from the beginning'
    : `from iteration ${resumedFrom.iteration}, ${resumedFrom.checkpoint}`;
}

/** An error on the held-out ratings beside those of means; none where the model knows no pair of them. */
function testError(
  of: 'rmse' | 'mae',
  own: number | undefined,
  pairs: number,
  baselines: Baselines | undefined,
): string {
  if (pairs === 0) return 'none: there is no pair';
  return own === undefined ? 'none: the model knows no pair' : besideMeans(of, own, baselines);
}

function bestOf({ iterations, bestIteration }: TrainingReport) {
  return iterations.find(({ iteration }) => iteration === bestIteration);
}

/** λ, or both where users and items have their own. */
function lambdaText({ algorithm, params }: TrainingReport): string {
  const {
    regParam,
    regParamUsers: users = regParam,
    regParamItems: items = regParam,
  } = algorithm === 'sgd' ? params : { regParam: params.regParam };
  return users === items ? String(users) : `${users} (users) and ${items} (items)`;
}
