import type { Dataset } from '../../api/dataset.ts';
import { checkWritable } from '../../api/output/check-output.ts';
import { refuseOverlap } from '../../api/output/check-overlap.ts';
import { packageInfo } from '../../api/package-info.ts';
import type { SearchSpace, TrialParams } from '../../api/validation/tuning/search-space.ts';
import type { TrainValidationSplit } from '../../api/validation/tuning/train-validation-split.ts';
import { UsageError } from '../../engine/errors.ts';
import type { EventSink, Session, TrainValidationSplitOptions, Tuning } from '../../index.ts';
import type { CommandContext, CommandResult } from '../commands/command.ts';
import { baselinesOf } from '../options/data/ranking-options.ts';
import { flagName } from '../options/option.ts';
import { type Algorithm, givenParams } from '../options/training/param-options.ts';
import { soughtValues, spaceOf, tuneOptions, type TuneValues } from '../options/training/tune-options.ts';
import { heldOutRankingJson } from '../report/measured.ts';
import { nameFlags } from '../report/name-flags.ts';
import { peakMemoryBytes } from '../report/training-report.ts';
import { trialJson, tuningText } from '../report/tuning.ts';
import { knownRows, openSession, readNamed } from './open-session.ts';
import { ratingOptions } from './trainer.ts';
import type { TrialsFile } from './trials-file.ts';

/** A `tune` command as given. */
export interface SearchRun {
  readonly values: TuneValues;
  readonly given: ReadonlySet<string>;
  /** Paths of the ratings. */
  readonly ratings: readonly string[];
}

type Splitting = Omit<TrainValidationSplitOptions, 'estimator' | 'space' | 'first'>;

interface Warning {
  readonly code: string;
  readonly text: string;
}

/** The search that the flags describe, before ratings are read. */
interface Search {
  readonly space: SearchSpace;
  readonly splitting: Splitting;
  readonly tuner: TrainValidationSplit;
}

/** Checks files and folders, runs the trials, and saves the best model. */
export async function runSearch(run: SearchRun, context: CommandContext): Promise<CommandResult> {
  const { values, ratings: paths } = run;
  const warnings: Warning[] = [];
  const space = spaceOf(values, run.given);
  const onEvent = listener(context.onEvent, Object.keys(space.space), warnings);
  const trialsPath = values.trialsFile ?? `${values.modelDir.replace(/\/+$/, '')}.trials.ndjson`;
  await checkPlaces(run, trialsPath);
  const search = await searchOf(run, space);
  await using session = await openSession(values, context);
  const ratings = await readNamed(session, paths, values);
  const validation =
    values.validation === undefined ? undefined : await readNamed(session, values.validation, values);
  const file = await openTrials(trialsPath, await definitionOf(run, search, ratings), values);
  if (file.done.length > 0)
    onEvent({ type: 'note', text: `${file.done.length} trials of ${file.path} are not run again` });
  const tuning = await keepingTrials(file, onEvent, async () => {
    const { signal } = context;
    const found = await search.tuner.fit(ratings, {
      signal,
      onEvent,
      validation,
      done: file.done,
      onTrial: (trial) => file.add(trial),
    });
    await found.model.save(values.modelDir, { overwrite: values.force, signal });
    return found;
  });
  if (values.trialsFile === undefined) await file.remove();
  return resultOf(tuning, { values, search, session, warnings });
}

/** Collects warnings, with flags in place of option names, and passes events on. */
function listener(onEvent: EventSink, names: readonly string[], warnings: Warning[]): EventSink {
  return (event) => {
    if (event.type === 'warning' && event.code !== undefined)
      warnings.push({ code: event.code, text: nameFlags(event.text, tuneOptions) });
    onEvent(event.type === 'note' ? { ...event, text: inFlags(event.text, names) } : event);
  };
}

/** A note in which parameters have their flag names. */
function inFlags(text: string, names: readonly string[]): string {
  return names.reduce(
    (changed, name) => changed.replaceAll(new RegExp(`(^|[ ,])${name} `, 'g'), `$1${flagName(name)} `),
    text,
  );
}

async function checkPlaces({ values, ratings }: SearchRun, trialsPath: string): Promise<void> {
  const { modelDir, force, validation } = values;
  for (const output of [modelDir, trialsPath]) await refuseOverlap(output, [...ratings, validation]);
  await checkWritable(modelDir);
  await checkWritable(trialsPath);
  const { checkModelDirectory } = await import('../../api/inspect/model-folder.ts');
  await checkModelDirectory(modelDir, force);
}

async function searchOf(
  { values, given }: SearchRun,
  { space, algorithms }: ReturnType<typeof spaceOf>,
): Promise<Search> {
  const { TrainValidationSplit } = await import('../../api/validation/tuning/train-validation-split.ts');
  const splitting = await splittingOf(values);
  if (given.has('baselines') && ['rmse', 'mae'].includes(splitting.metric ?? 'rmse'))
    throw new UsageError('--baselines acts only with a ranking metric', {
      advice: 'Add --metric, such as ndcg@20, or leave it out: errors are compared with means',
    });
  const estimator = await estimatorOf(values, given, algorithms);
  // Without --try the defaults are the first trial, so that a search never gives a worse result than no
  // search.
  const defaults = estimator({}).params as unknown as TrialParams;
  const first =
    values.try === undefined
      ? [Object.fromEntries(Object.keys(space).map((name) => [name, defaults[name]]))]
      : [];
  const tuner = new TrainValidationSplit({ estimator, space, first, ...splitting });
  if (given.has('trials') && tuner.search === 'grid')
    throw new UsageError('--trials acts only with --search random or halving: a grid has all combinations', {
      advice: 'Leave it out, or choose another search',
    });
  return { space, splitting, tuner };
}

/** The options of the search itself. */
async function splittingOf(values: TuneValues): Promise<Splitting> {
  const { tuningMetricOf } = await import('../../api/validation/tuning/trial.ts');
  const { seed = 0, implicitPrefs = false } = values;
  return {
    metric: tuningMetricOf(values.metric ?? (implicitPrefs ? 'ndcg@20' : 'rmse')),
    validationFraction: values.validationFraction,
    seed,
    trials: values.trials,
    parallelism: values.parallel,
    warmStart: values.warmStart,
    ranking: values.ranking,
    baselines: baselinesOf(values.baselines),
    rankUsers: values.rankUsers,
    ...(values.search === undefined ? {} : { search: values.search }),
  };
}

/** Everything that affects the trials: a search can only be resumed if this is unchanged. */
async function definitionOf(
  { values, given, ratings: paths }: SearchRun,
  { splitting, tuner, space }: Search,
  ratings: Dataset,
): Promise<object> {
  const { identityOf } = await import('../../api/inspect/inspect-files.ts');
  // Options without an effect on the trials.
  const {
    parallelism: _parallelism,
    ranking: _ranking,
    rankUsers: _rankUsers,
    baselines: _,
    ...defined
  } = splitting;
  return {
    ...defined,
    search: tuner.search,
    space,
    params: soughtValues(values, given),
    algorithm: values.algorithm ?? 'als',
    ratings: await identityOf(paths),
    validation: values.validation === undefined ? null : await identityOf([values.validation]),
    version: packageInfo().version,
    rows: (await knownRows(ratings)) ?? null,
  };
}

async function openTrials(path: string, definition: object, values: TuneValues): Promise<TrialsFile> {
  const { TrialsFile } = await import('./trials-file.ts');
  return TrialsFile.open(path, JSON.parse(JSON.stringify(definition)), values);
}

/** Completed trials are kept if a later one fails, if saving fails, and after a cancel. */
async function keepingTrials(
  file: TrialsFile,
  onEvent: EventSink,
  work: () => Promise<Tuning>,
): Promise<Tuning> {
  try {
    return await work();
  } catch (error) {
    if (file.written === 0 && file.done.length === 0) await file.remove();
    else
      onEvent({
        type: 'warning',
        text: `the trials that have ended are in ${file.path}; the same command with --resume continues`,
      });
    throw error;
  }
}

async function resultOf(
  tuning: Tuning,
  run: {
    readonly values: TuneValues;
    readonly search: Search;
    readonly session: Session;
    readonly warnings: readonly Warning[];
  },
): Promise<CommandResult> {
  const { values, search, session, warnings } = run;
  const { modelDir } = values;
  const { metric } = search.tuner;
  const { best, trials, baselines } = tuning;
  // Counted from the start of the process.
  const totalSeconds = performance.now() / 1000;
  const report =
    values.report === undefined
      ? undefined
      : (await import('../page/sections/trials.ts')).searchPage(tuning, metric, {
          adapter: session.device.adapter,
          totalSeconds,
          warnings: warnings.map(({ text }) => text),
        });
  return {
    json: {
      command: 'tune',
      metric,
      search: search.tuner.search,
      best: trialJson(best, tuneOptions),
      ranking: heldOutRankingJson(best.ranking),
      baselines: { ...baselines },
      trials: trials.map((trial) => trialJson(trial, tuneOptions)),
      warnings: warnings.map(({ code, text }) => ({ code, text })),
      seconds: { total: totalSeconds },
      peakRssBytes: peakMemoryBytes(),
      model: modelDir,
    },
    text: tuningText(tuning, metric, { modelDir, totalSeconds }),
    report,
  };
}

/** Creates the trainer for a combination; the flags give its other parameters. */
async function estimatorOf(values: TuneValues, given: ReadonlySet<string>, algorithms: readonly Algorithm[]) {
  const [{ ALS }, { SGD }] = await Promise.all([
    import('../../api/training/als.ts'),
    import('../../api/training/sgd.ts'),
  ]);
  const { onDuplicates, timestampCol, userCol, itemCol, ratingCol, onBadRows } = values;
  const others = ratingOptions({
    onDuplicates,
    timestampCol,
    userCol,
    itemCol,
    ratingCol,
    onBadRows,
    coldStart: 'nan',
  });
  return (params: TrialParams) => {
    const { algorithm = algorithms[0], ...own } = params;
    return algorithm === 'sgd'
      ? new SGD({ ...givenParams('sgd', values, given), ...own, ...others })
      : new ALS({ ...givenParams('als', values, given), ...own, ...others });
  };
}
