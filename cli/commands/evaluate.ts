import { UsageError, DataError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import type {
  Dataset,
  EventSink,
  Evaluation,
  JsonObject,
  Model,
  Session,
  RankingEvaluation,
} from '../../index.ts';
import { badRowsOption, columnOptions, readOptions } from '../options/data/data-options.ts';
import { checkRanking, rankingOptions, rankingSettings } from '../options/data/ranking-options.ts';
import { machineOptions, parquetBackendOption } from '../options/machine-options.ts';
import type { Values } from '../options/option.ts';
import { commonOptions, profileOption, reportOption, traceOption } from '../options/output-options.ts';
import { trainingOptions } from '../options/training/training-options.ts';
import { facts } from '../report/facts.ts';
import {
  besideMeans,
  pairParts,
  partFacts,
  isVerdict,
  withoutVerdict,
  namedBaselines,
  rankedUsersText,
} from '../report/measured.ts';
import { nameFlags } from '../report/name-flags.ts';
import { knownRows, openSession, readNamed, readWhole } from '../sessions/open-session.ts';
import { type CommandResult, defineCommand, modelFolder, words } from './command.ts';

const options = {
  ...columnOptions,
  ...readOptions,
  onBadRows: badRowsOption,
  ...rankingOptions,
  ...machineOptions,
  parquetBackend: parquetBackendOption,
  profile: profileOption,
  trace: traceOption,
  report: reportOption,
  ...commonOptions,
};

export const command = defineCommand({
  summary: "Compare a model's predictions with known ratings",
  positionals: [
    modelFolder,
    words(
      'ratings',
      'ratings with the columns that the model was trained on: files, folders, quoted globs, or - for stdin',
    ),
  ],
  options,
  examples: [
    ['evaluate model test.parquet', 'RMSE and MAE over the pairs that the model knows'],
    [
      'evaluate model test.parquet --ranking --k 10,20 --exclude train.parquet',
      'NDCG, recall and others over full rankings of what users have not seen',
    ],
    [
      'evaluate model test.parquet --ranking --candidates negatives.parquet --exclude train.parquet',
      'the same over sampled negatives, as some papers have it',
    ],
  ],
  epilog:
    'Pairs with a user or an item that the model does not know are counted as cold and never averaged ' +
    'in. Where no pair is known, or no user is left to rank, the command ends with exit code 3.',
  run: async ({ values, given, positionals }, { signal, onEvent, expect, profile }) => {
    checkRanking(values, given);
    await using session = await openSession(values, { signal, profile });
    const ratings = await readNamed(session, positionals.ratings, values);
    expect('evaluate', (await knownRows(ratings)) ?? 0);
    const model = await session.loadModel(positionals.model[0], { signal, onEvent });
    const listen = withoutColdTest(withoutVerdict(onEvent));
    const path = positionals.model[0];
    const run = { values, session, model, path, ratings, signal, onEvent: listen };
    // Awaited here, since the session's threads end with this function.
    return values.ranking ? await evaluateRankings(run) : await evaluateErrors(run);
  },
});

interface EvaluationRun {
  readonly values: Values<typeof options>;
  readonly session: Session;
  readonly model: Model;
  /** The folder of the model. */
  readonly path: string;
  readonly ratings: Dataset;
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
}

async function evaluateRankings(run: EvaluationRun): Promise<CommandResult> {
  const { values, session, model, path, ratings, signal, onEvent } = run;
  const read = async (paths: string | undefined) =>
    paths === undefined ? undefined : await readWhole(session, paths, values);
  const found = await model.evaluateRanking(ratings, {
    ...rankingSettings(values),
    exclude: await read(values.exclude),
    candidates: await read(values.candidates),
    signal,
    onEvent,
    onBadRows: values.onBadRows,
  });
  requireRankedUsers(found);
  if (values.report === undefined) return rankingResult(found);
  const { rankingPage } = await import('../report/evaluation-page.ts');
  return { ...rankingResult(found), report: rankingPage(found, path, session.device.adapter) };
}

async function evaluateErrors(run: EvaluationRun): Promise<CommandResult> {
  const { values, session, model, path, ratings, signal, onEvent } = run;
  if ((model.metadata.params as JsonObject | undefined)?.implicitPrefs === true)
    throw new UsageError('implicit data have no RMSE', {
      advice: 'Measure rankings: --ranking --k 20 --exclude TRAIN',
    });
  const evaluation = await model.evaluate(ratings, {
    signal,
    onEvent,
    onBadRows: values.onBadRows,
    breakdown: values.report !== undefined,
  });
  requireKnownPairs(evaluation);
  const result = evaluationResult(evaluation);
  if (values.report === undefined) return result;
  const { evaluationPage } = await import('../report/evaluation-page.ts');
  return { ...result, report: evaluationPage(evaluation, path, model, session.device.adapter) };
}

function evaluationResult({
  rmse,
  mae,
  pairs,
  warm,
  cold,
  coldPairs,
  badRows,
  baselines,
  warnings,
}: Evaluation): CommandResult {
  const error = (name: 'rmse' | 'mae', value: number) => {
    if (Number.isFinite(value)) return besideMeans(name, value, baselines);
    return 'none: a prediction is NaN or infinite';
  };
  return {
    json: {
      command: 'evaluate',
      metrics: { rmse, mae },
      baselines: baselines ?? null,
      pairs,
      ...(cold && { warm, cold }),
      coldPairs,
      badRows,
      warnings: warnings.map(({ code, text }) => ({ code, text })),
    },
    text: [
      facts([
        ['RMSE', error('rmse', rmse)],
        ['MAE', error('mae', mae)],
        ['pairs', formatCount(pairs)],
        ...partFacts({ warm, cold }),
        ['unknown pairs', `${formatCount(coldPairs)} (not averaged in)`],
        ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
      ]),
      ...warnings.filter(isVerdict).map(({ text }) => `warning: ${text}`),
    ].join('\n'),
  };
}

/** Throws DataError if the model knows no test pair. */
function requireKnownPairs({ pairs, coldPairs }: Pick<Evaluation, 'pairs' | 'coldPairs'>): void {
  if (coldPairs < pairs) return;
  const reason = `there is nothing to measure: the model knows none of the ${formatCount(pairs)} pairs`;
  const advice =
    'Check that the ids are of the kind that the model was trained on, and that userCol and itemCol name their columns';
  throw new DataError(reason, { phase: 'evaluate', advice });
}

/** Throws DataError if no user is left to rank, with the reasons. */
function requireRankedUsers(found: RankingEvaluation): void {
  if (found.users > 0) return;
  const { pairs, coldPairs, leakedPairs, irrelevantPairs, candidates } = found;
  const reasons = (
    [
      [
        coldPairs,
        'have a user or an item that the model does not know',
        'that the ids are of the kind that the model was trained on',
      ],
      [
        leakedPairs,
        'are excluded as well',
        'that the test ratings are not in the data set of the option exclude',
      ],
      [irrelevantPairs, 'are rated below minRating', 'minRating'],
    ] as const
  ).filter(([count]) => count > 0);
  const left = reasons.map(([count, text]) => `${formatCount(count)} ${text}`);
  const checks: string[] = reasons.map(([, , check]) => check);
  if (candidates !== undefined && candidates.usersWithout > 0) {
    left.push(`${formatCount(candidates.usersWithout)} users have no candidate`);
    checks.push('that the candidates are of the users of the test ratings');
  }
  const reason = `no user is left to rank: of ${formatCount(pairs)} test pairs ${left.join(', ')}`;
  throw new DataError(reason, { phase: 'evaluate', advice: `Check ${checks.join(', and ')}` });
}

/** A listener that drops the warning that no pair is known, since the command reports it as an error. */
function withoutColdTest(onEvent: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'warning' || event.code !== 'cold-test') onEvent(event);
  };
}

/** The result of `evaluate --ranking`. */
function rankingResult(found: RankingEvaluation): CommandResult {
  const { metrics, intervals, baselines, warnings, ...counts } = found;
  return {
    json: {
      command: 'evaluate',
      metrics,
      intervals,
      baselines: { ...baselines },
      ...counts,
      warnings: warnings.map(({ code, text }) => ({ code, text: nameFlags(text, trainingOptions) })),
    },
    text: rankingText(found),
  };
}

function rankingText({ metrics, intervals, baselines, warnings, ...counts }: RankingEvaluation): string {
  const columns: (readonly [title: string, of: (name: string) => string])[] = [
    ['metric', (name) => name],
    ['model', (name) => number(metrics[name])],
    ...(Object.keys(intervals).length > 0
      ? [
          [
            '95 %',
            (name: string) =>
              intervals[name] ? `${number(intervals[name][0])} to ${number(intervals[name][1])}` : '',
          ] as const,
        ]
      : []),
    ...[...pairParts(counts), ...namedBaselines(baselines)].map(
      ([title, values]) => [title, (name: string) => number(values[name])] as const,
    ),
  ];
  const rows = [
    columns.map(([title]) => title),
    ...Object.keys(metrics).map((name) => columns.map(([, of]) => of(name))),
  ];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const table = rows
    .map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column])).join('  ')}`.trimEnd())
    .join('\n');
  const some = (count: number, text: string) => (count === 0 ? undefined : `${formatCount(count)} ${text}`);
  return [
    table,
    facts([
      [
        'users',
        `${rankedUsersText(counts)}${counts.coldUsers > 0 ? `; ${formatCount(counts.coldUsers)} others are unknown to the model` : ''}`,
      ],
      ['pairs', formatCount(counts.pairs)],
      [
        'cold pairs',
        counts.cold &&
          some(
            counts.cold.pairs,
            `of users and items without ratings, known by attributes; ${formatCount(counts.cold.users)} users`,
          ),
      ],
      [
        'unknown pairs',
        some(
          counts.coldPairs,
          `with a user or an item that the model does not know (${formatCount(counts.coldItems)} items)`,
        ),
      ],
      ['leaked pairs', some(counts.leakedPairs, 'are excluded as well; not ranked')],
      ['repeated pairs', some(counts.repeatedPairs, 'repeat another; ranked once')],
      ['irrelevant pairs', some(counts.irrelevantPairs, 'are rated below --min-rating')],
      ...candidateFacts(counts.candidates),
      [
        'unknown exclusions',
        some(counts.unknownExcluded, 'with a user or an item that the model does not know'),
      ],
    ]),
    ...warnings.filter(isVerdict).map(({ text }) => `warning: ${nameFlags(text, trainingOptions)}`),
  ].join('\n\n');
}

function candidateFacts(
  candidates: RankingEvaluation['candidates'],
): (readonly [name: string, value: string | undefined])[] {
  if (candidates === undefined) return [];
  const { pairs, coldPairs, excludedPairs, repeatedPairs, idlePairs, usersWithout } = candidates;
  const left = [
    [coldPairs, 'that the model does not know'],
    [excludedPairs, 'are excluded'],
    [repeatedPairs, 'repeat another'],
    [idlePairs, 'of users without a known test pair'],
  ] as const;
  const shown = left.flatMap(([count, text]) => (count === 0 ? [] : [`${formatCount(count)} ${text}`]));
  return [
    ['candidates', `${formatCount(pairs)}${shown.length === 0 ? '' : `; not ranked: ${shown.join(', ')}`}`],
    [
      'no candidates',
      usersWithout === 0 ? undefined : `${formatCount(usersWithout)} users, who are not measured`,
    ],
  ];
}

function number(value: number | undefined): string {
  if (value === undefined) return '-';
  return Number.isFinite(value) ? value.toFixed(4) : 'none';
}
