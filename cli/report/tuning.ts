import { textTable } from '../../api/inspect/text-table.ts';
import { formatCount } from '../../engine/format.ts';
import type { JsonObject, Trial, Tuning } from '../../index.ts';
import { flagName, type Options } from '../options/option.ts';
import { seconds3 } from '../progress/phrases.ts';
import { facts } from './facts.ts';
import { searchBaselines, heldOutRankingFacts } from './measured.ts';
import { nameFlags } from './name-flags.ts';

/** The rows of the table of a search. */
export type Tried = Pick<Tuning, 'trials' | 'baselines'>;

/** Trials from best to worst; stopped and failed trials come last. */
export function sortedTrials(trials: readonly Trial[], metric: string): Trial[] {
  const sign = metric === 'rmse' || metric === 'mae' ? 1 : -1;
  const group = ({ failure, stopped }: Trial) => (failure !== undefined ? 2 : stopped ? 1 : 0);
  return trials.toSorted(
    (a, b) => group(a) - group(b) || (group(a) === 2 ? 0 : sign * (a.value - b.value)) || a.number - b.number,
  );
}

/** The baselines and the trials as a table, trials from best to worst. */
export function trialsTable(tuning: Tried, metric: string): string {
  const { head, rows } = trialRows(tuning, metric);
  return textTable({ head, colAligns: head.map((name) => (name === 'remark' ? 'left' : 'right')) }, rows);
}

/** The head and rows of this table; baselines come first. */
export function trialRows(
  { trials, baselines }: Tried,
  metric: string,
): { readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] } {
  const names = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  const ofRmse = metric !== 'rmse' && trials.some(({ rmse }) => rmse !== undefined);
  const number = (value: number | undefined) =>
    value === undefined || !Number.isFinite(value) ? '' : value.toFixed(4);
  const others = names.map(() => '');
  const simple = searchBaselines(baselines).map(([title, value]) => [
    '',
    ...others,
    number(value),
    ...(ofRmse ? [''] : []),
    '',
    '',
    `baseline: ${title}`,
  ]);
  const rows = sortedTrials(trials, metric).map((trial) => [
    String(trial.number),
    ...names.map((name) => valueText((trial.params as Readonly<Record<string, unknown>>)[name])),
    number(trial.value),
    ...(ofRmse ? [number(trial.rmse)] : []),
    trial.bestIteration < trial.iterations
      ? `${trial.bestIteration} of ${trial.iterations}`
      : String(trial.iterations),
    trial.seconds.toFixed(2),
    trial.failure ?? (trial.stopped ? 'stopped' : trial.warm ? 'warm' : ''),
  ]);
  return {
    head: [
      'trial',
      ...names.map(flagName),
      metric,
      ...(ofRmse ? ['rmse'] : []),
      'iterations',
      'seconds',
      'remark',
    ],
    rows: [...simple, ...rows],
  };
}

function valueText(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : value === undefined ? '' : String(value);
}

export function tuningText(
  { best, trials, baselines }: Tuning,
  metric: string,
  { modelDir, totalSeconds }: { readonly modelDir: string; readonly totalSeconds: number },
): string {
  const compared = searchBaselines(baselines).map(([title, value]) => `${title} ${value.toFixed(4)}`);
  return [
    trialsTable({ trials, baselines }, metric),
    `best: trial ${best.number}, ${Object.entries(best.params)
      .map(([name, value]) => `${flagName(name)} ${valueText(value)}`)
      .join(
        ', ',
      )}: ${metric} ${best.value.toFixed(4)} on the validation ratings${compared.length > 0 ? ` (${compared.join(', ')})` : ''}`,
    ...(best.ranking === undefined ? [] : [facts(heldOutRankingFacts(best.ranking))]),
    `${formatCount(trials.length)} trials in ${seconds3(totalSeconds)}; trained with the best parameters on all ratings: ${modelDir}`,
    'The value of the best of many trials is too good by a little: measure the model on ratings that the search has not seen (evaluate)',
  ].join('\n');
}

/** A trial as JSON; the value of a failed trial is null. */
export function trialJson({ value, warnings, ...trial }: Trial, options: Options): JsonObject {
  const shown = warnings?.map(({ code, text }) => ({ code, text: nameFlags(text, options) }));
  return {
    ...(JSON.parse(JSON.stringify(trial)) as JsonObject),
    ...(shown ? { warnings: shown } : {}),
    value: Number.isFinite(value) ? value : null,
  };
}
