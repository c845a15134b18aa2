import { UsageError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import type { Dataset, EventSink, Evaluation, JsonObject, Model, Session } from '../../index.ts';
import { type CommandResult, defineCommand } from './command.ts';
import type { Values } from '../options/option.ts';
import { besideMeans, isVerdict, withoutVerdict } from '../report/beside-means.ts';
import { requireKnownPairs, requireRankedUsers, withoutColdTest } from '../report/nothing-measured.ts';
import { facts } from '../report/facts.ts';
import { knownRows, openSession } from '../sessions/open-session.ts';
import { readNamed, readWhole } from '../sessions/read-ratings.ts';
import { badRowsOption, columnOptions } from '../options/data/data-options.ts';
import { readOptions } from '../options/data/text-options.ts';
import { machineOptions, parquetBackendOption } from '../options/machine-options.ts';
import { checkRanking, rankingOptions, rankingSettings } from '../options/data/ranking-options.ts';
import { rankingResult } from '../report/ranking-report.ts';
import { commonOptions, profileOption, reportOption, traceOption } from '../options/output-options.ts';

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

export const evaluate = defineCommand({
  summary: "Compare a model's predictions with known ratings",
  positionals: [
    { name: 'model', describe: 'folder of a model', required: true },
    {
      name: 'ratings',
      describe:
        'ratings with the columns that the model was trained on: files, folders, quoted globs, or ' +
        '- for stdin',
      required: true,
      many: true,
    },
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
      coldPairs,
      badRows,
      warnings: warnings.map(({ code, text }) => ({ code, text })),
    },
    text: [
      facts([
        ['RMSE', error('rmse', rmse)],
        ['MAE', error('mae', mae)],
        ['pairs', formatCount(pairs)],
        ['cold pairs', `${formatCount(coldPairs)} (not averaged in)`],
        ['bad rows', badRows === 0 ? undefined : `${formatCount(badRows)} left out`],
      ]),
      ...warnings.filter(isVerdict).map(({ text }) => `warning: ${text}`),
    ].join('\n'),
  };
}
