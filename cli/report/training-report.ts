import { readFileSync } from 'node:fs';
import type { Model } from '../../api/model.ts';
import { type TrainingReport, comparedMemory } from '../../api/reports/training-report.ts';
import { counted, formatBytes, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../index.ts';
import type { CommandResult } from '../commands/command.ts';
import type { Options } from '../options/option.ts';
import type { WriteSummary } from '../output/write-output.ts';
import { seconds3 } from '../progress/phrases.ts';
import { facts } from './facts.ts';
import {
  besideMeans,
  isVerdict,
  type TrainingIteration,
  heldOutRankingFacts,
  heldOutRankingJson,
} from './measured.ts';
import { nameFlags } from './name-flags.ts';

export interface TrainedRun {
  readonly model: Model;
  readonly training: TrainingReport;
  /** Name of the session's GPU; null without one. */
  readonly adapter: string | null;
  readonly modelDir: string;
  /** True if training continued from a model. */
  readonly updated: boolean;
  /** True with --resume. */
  readonly resume?: boolean;
  /** The held-out ratings, if they were written. */
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
  return {
    algorithm: training.algorithm,
    device: kind,
    adapter: kind === 'gpu' ? adapter : null,
    users: model.userCount,
    items: model.itemCount,
    ratings: training.ratings,
    badRows: training.badRows,
    // Null if there was no checkpoint.
    ...(resume ? { resumedFrom: training.resumedFrom ? { ...training.resumedFrom } : null } : {}),
    duplicates: training.duplicates,
    iterations: training.iterations.map(iterationJson),
    ...testJson(training),
    warnings: training.warnings.map(({ code, text }) => ({ code, text: nameFlags(text, options) })),
    seconds: { ...training.seconds, total: totalSeconds },
    ...partitionsOf(training.plan),
    memory: comparedMemory(training.plan),
    peakRssBytes,
  };
}

function iterationJson(one: TrainingIteration): JsonObject {
  const { iteration, seconds, loss, trainRmse, fromSolve, testRmse, testMetrics } = one;
  return {
    iteration,
    seconds,
    loss,
    trainRmse,
    ...(fromSolve ? { fromSolve } : {}),
    testRmse,
    ...(testMetrics ? { testMetrics: { ...testMetrics } } : {}),
  };
}

/** The measures on held-out ratings. A test RMSE is null if the model knows no pair of the test set. */
function testJson(training: TrainingReport): JsonObject {
  if (training.testPairs === undefined) return {};
  const best = bestOf(training);
  return {
    testRmse: best?.testRmse ?? null,
    testMae: best?.testMae ?? null,
    coldPairs: training.coldPairs,
    testPairs: training.testPairs,
    baselines: training.baselines ?? null,
    ranking: heldOutRankingJson(training.ranking),
  };
}

/** For ALS in more than one part: p and q of each half-iteration, its places, and the tasks at each. */
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

function trainingText(run: TrainedRun): string {
  const { training, options } = run;
  return [
    titleOf(run),
    facts([...dataFacts(run), ...errorFacts(training), ...costFacts(run)]),
    ...training.warnings.filter(isVerdict).map(({ text }) => `warning: ${nameFlags(text, options)}`),
  ].join('\n');
}

/** "Trained ALS, rank 10, λ 0.02: 10 iterations in 0.4 s" */
function titleOf({ training, updated }: TrainedRun): string {
  const { algorithm, iterations, bestIteration, params, seconds } = training;
  const unit = algorithm === 'sgd' ? 'epoch' : 'iteration';
  const did = `${updated ? 'Updated by' : 'Trained'} ${algorithm.toUpperCase()}`;
  const alpha = isImplicit(training) ? `, α ${training.params.alpha} (implicit)` : '';
  const kept = bestIteration === iterations.length ? '' : `, the model is that of ${unit} ${bestIteration}`;
  const trained = seconds3(seconds.train - (seconds.validation ?? 0));
  return `${did}, rank ${params.rank}, λ ${lambdaText(training)}${alpha}: ${counted(iterations.length, unit)} in ${trained}${kept}`;
}

type Facts = Parameters<typeof facts>[0];

function dataFacts({ model, training, resume }: TrainedRun): Facts {
  const { ratings, duplicates, badRows } = training;
  const repeats = `${formatCount(duplicates)} ${duplicates === 1 ? 'repeats' : 'repeat'} an earlier pair`;
  return [
    ['users', formatCount(model.userCount)],
    ['items', formatCount(model.itemCount) + coldText(model)],
    ['ratings', formatCount(ratings) + (duplicates > 0 ? ` (${repeats})` : '')],
    ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
    ['resumed', resume ? resumedText(training) : undefined],
  ];
}

/** Items that have attributes, but no ratings. */
function coldText({ attributes, itemCounts }: Model): string {
  const cold = attributes?.item && itemCounts?.filter((count) => count === 0).length;
  return cold ? ` (${formatCount(cold)} without ratings, by their attributes)` : '';
}

/** Errors and rankings of the iteration that the model has. */
function errorFacts(training: TrainingReport): Facts {
  const { testPairs, coldPairs, ranking } = training;
  const best = bestOf(training);
  const ranked = ranking?.metrics ?? {};
  return [
    ['train RMSE', best?.trainRmse?.toFixed(4)],
    ['test RMSE', testError('rmse', best?.testRmse, training)],
    ['test MAE', testError('mae', best?.testMae, training)],
    ...Object.entries(best?.testMetrics ?? {})
      .filter(([name]) => !(name in ranked))
      .map(([name, value]) => [`test ${name}`, value.toFixed(4)] as const),
    ...heldOutRankingFacts(ranking),
    ['test error', best?.testMetrics === undefined ? noTestError(training) : undefined],
    ['test pairs', testPairs === undefined ? undefined : formatCount(testPairs)],
    ['cold pairs', coldPairs === undefined ? undefined : `${formatCount(coldPairs)} (not averaged in)`],
  ];
}

/** The reason why a model of implicit data has no measure on held-out ratings. */
function noTestError(training: TrainingReport): string | undefined {
  const { testPairs, coldPairs, ranking } = training;
  if (testPairs === undefined || ranking !== undefined || !isImplicit(training)) return undefined;
  return `none: ${testPairs === coldPairs ? 'the model knows no pair' : 'evaluate --ranking measures models of implicit data'}`;
}

function costFacts({ training, modelDir, heldOut, totalSeconds, peakRssBytes }: TrainedRun): Facts {
  const { seconds } = training;
  const loading = `${seconds3(seconds.load)} of it loading${validationText(seconds)}`;
  return [
    ['time', `${seconds3(totalSeconds)} in all, ${loading}; at most ${formatBytes(peakRssBytes)} of memory`],
    ['model', modelDir],
    ['held out', heldOut && `${counted(heldOut.rows, 'rating')}, ${heldOut.path}`],
  ];
}

export function isImplicit(
  training: TrainingReport,
): training is Extract<TrainingReport, { readonly algorithm: 'als' }> {
  return training.algorithm === 'als' && training.params.implicitPrefs;
}

/** ", 0.43 s validation and 0.20 s ranking" for a run with held-out ratings; else empty. */
function validationText({ validation, ranking }: TrainingReport['seconds']): string {
  if (validation === undefined) return '';
  return `, ${seconds3(validation)} validation${ranking === undefined ? '' : `, ${seconds3(ranking)} ranking`}`;
}

function resumedText({ resumedFrom }: TrainingReport): string {
  return resumedFrom === undefined
    ? 'no checkpoint was there, from the beginning'
    : `from iteration ${resumedFrom.iteration}, ${resumedFrom.checkpoint}`;
}

/** An error on the held-out ratings compared with means; null if the model knows no pair of them. */
function testError(
  of: 'rmse' | 'mae',
  own: number | undefined,
  training: TrainingReport,
): string | undefined {
  const { testPairs, baselines } = training;
  if (testPairs === undefined || isImplicit(training)) return undefined;
  if (testPairs === 0) return 'none: there are no test pairs';
  return own === undefined ? 'none: the model knows no pair' : besideMeans(of, own, baselines);
}

/** The iteration that the model has. */
export function bestOf({ iterations, bestIteration }: TrainingReport) {
  return iterations.find(({ iteration }) => iteration === bestIteration);
}

/** λ, or both values if users and items have their own. */
function lambdaText({ algorithm, params }: TrainingReport): string {
  const {
    regParam,
    regParamUsers: users = regParam,
    regParamItems: items = regParam,
  } = algorithm === 'sgd' ? params : { regParam: params.regParam };
  return users === items ? String(users) : `${users} (users) and ${items} (items)`;
}

/**
 * The most resident memory that this process has had, in bytes. Linux keeps getrusage's figure over exec, so
 * that a process begins with the memory of the one that started it; VmHWM is of this program alone.
 */
export function peakMemoryBytes(): number {
  try {
    const kibibytes = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // Only Linux has the file.
  }
  return process.resourceUsage().maxRSS * 1024;
}
