import { formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../index.ts';
import { defineCommand } from './command.ts';
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

const IMPLICIT_NOTE =
  'The model is of implicit data: it predicts preferences from 0 to 1, and their errors tell little. Measure it with --ranking';

export const evaluate = defineCommand({
  summary: "Compare a model's predictions with known ratings",
  positionals: [
    { name: 'model', describe: 'folder of a model', required: true },
    {
      name: 'ratings',
      describe:
        'ratings with the columns that the model was trained on: files, folders, quoted globs, or - for stdin',
      required: true,
      many: true,
    },
  ],
  options: {
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
  },
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
    'Pairs with a user or an item that the model does not know are counted as cold and never averaged in. Where no pair is known, or no user is left to rank, the command ends with exit code 3.',
  run: async ({ values, given, positionals }, { signal, onEvent, expect, profile }) => {
    checkRanking(values, given);
    await using session = await openSession(values, { signal, profile });
    const ratings = await readNamed(session, positionals.ratings, values);
    expect('evaluate', (await knownRows(ratings)) ?? 0);
    const model = await session.loadModel(positionals.model[0]);
    const listen = withoutColdTest(withoutVerdict(onEvent));
    if (values.ranking) {
      const exclude =
        values.exclude === undefined ? undefined : await readWhole(session, values.exclude, values);
      const candidates =
        values.candidates === undefined ? undefined : await readWhole(session, values.candidates, values);
      const found = await model.evaluateRanking(ratings, {
        ...rankingSettings(values),
        exclude,
        candidates,
        signal,
        onEvent: listen,
        onBadRows: values.onBadRows,
      });
      requireRankedUsers(found);
      if (values.report === undefined) return rankingResult(found);
      return {
        ...rankingResult(found),
        report: (await import('../report/evaluation-page.ts')).rankingPage(
          found,
          positionals.model[0],
          session.device.adapter,
        ),
      };
    }
    const evaluation = await model.evaluate(ratings, {
      signal,
      onEvent: listen,
      onBadRows: values.onBadRows,
      breakdown: values.report !== undefined,
    });
    requireKnownPairs(evaluation);
    const { rmse, mae, pairs, coldPairs, badRows, baselines, warnings } = evaluation;
    const error = (name: 'rmse' | 'mae', value: number) => {
      if (Number.isFinite(value)) return besideMeans(name, value, baselines);
      return 'none: a prediction is beyond the numbers (NaN or infinite)';
    };
    const report =
      values.report === undefined
        ? undefined
        : (await import('../report/evaluation-page.ts')).evaluationPage(
            evaluation,
            positionals.model[0],
            model,
            session.device.adapter,
          );
    return {
      report,
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
        ...((model.metadata.params as JsonObject | undefined)?.implicitPrefs === true ? [IMPLICIT_NOTE] : []),
        ...warnings.filter(isVerdict).map(({ text }) => `warning: ${text}`),
      ].join('\n'),
    };
  },
});
