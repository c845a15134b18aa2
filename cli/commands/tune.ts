import type { SearchSpace, TrialParams } from '../../api/validation/tuning/search-space.ts';
import { UsageError } from '../../engine/errors.ts';
import { packageInfo } from '../../api/package-info.ts';
import { checkAlgorithm } from '../options/training/check-algorithm.ts';
import { columnOptions, policyOptions } from '../options/data/data-options.ts';
import { heldOutRankingOptions } from '../options/data/held-out-options.ts';
import { choice, decimal, text, toggle, wholeNumber } from '../options/kinds.ts';
import {
  fakeDevicesOption,
  machineOptions,
  memoryBudgetOption,
  parquetBackendOption,
  spillDirOption,
} from '../options/machine-options.ts';
import { flagName, type Values } from '../options/option.ts';
import {
  commonOptions,
  forceOption,
  profileOption,
  reportOption,
  traceOption,
} from '../options/output-options.ts';
import { type Algorithm, givenParams, paramOptions } from '../options/training/param-options.ts';
import { readOptions } from '../options/data/text-options.ts';
import { modelDirOption } from '../options/training/training-options.ts';
import { readSpace, usualSpace } from '../options/training/try-option.ts';
import { checkWritable } from '../output/check-output.ts';
import { refuseOverlap } from '../output/check-overlap.ts';
import { heldOutRankingJson } from '../report/held-out-ranking.ts';
import { nameFlags } from '../report/name-flags.ts';
import { trialJson, tuningText } from '../report/tuning.ts';
import { knownRows, openSession } from '../sessions/open-session.ts';
import { readNamed } from '../sessions/read-ratings.ts';
import { ratingOptions } from '../sessions/trainer.ts';
import { type CommandContext, defineCommand } from './command.ts';

const search = 'Search:';

const options = {
  modelDir: modelDirOption,
  algorithm: choice({
    describe: 'algorithm; --try algorithm=als,sgd compares both',
    group: 'Model:',
    choices: ['als', 'sgd'],
    defaultText: 'als',
  }),
  try: text({
    describe:
      "parameters with the values to try: lists and ranges, such as 'rank=8,16,32 reg-param=0.005..0.2'",
    group: search,
    defaultText: 'rank, λ and what else matters for the algorithm; implicit: rank, α and ν',
  }),
  search: choice({
    describe: 'all combinations; combinations at random; or those, of which the best third goes on at a time',
    group: search,
    choices: ['grid', 'random', 'halving'],
    defaultText: 'grid for lists alone, else random',
  }),
  trials: wholeNumber({
    describe: 'trials of a search at random',
    group: search,
    least: 1,
    most: 100_000,
    fallback: 30,
  }),
  metric: text({
    describe: 'rmse, mae, or a ranking metric such as ndcg@20',
    group: search,
    defaultText: 'rmse; implicit: ndcg@20',
  }),
  validation: text({ describe: 'ratings that trials are measured on; never the test set', group: search }),
  validationFraction: decimal({
    describe: 'the part of the ratings that trials are measured on',
    group: search,
    above: 0,
    below: 1,
    fallback: 0.1,
  }),
  parallel: wholeNumber({
    describe: 'trials at the same time; each uses all workers already',
    group: search,
    least: 1,
    most: 64,
    fallback: 1,
  }),
  warmStart: toggle({
    describe:
      'ALS: begin with the factors of the larger λ before, in half the iterations; faster, and a little to the good of small λ',
    group: search,
  }),
  trialsFile: text({
    describe: 'file of the trials that have ended, a line of JSON each; kept where it is named',
    group: search,
    defaultText: 'MODEL-DIR.trials.ndjson, until the end',
  }),
  resume: toggle({ describe: 'go on with a search that was interrupted', group: search }),
  ...heldOutRankingOptions,
  ...paramOptions,
  ...columnOptions,
  ...readOptions,
  ...policyOptions,
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  spillDir: spillDirOption,
  parquetBackend: parquetBackendOption,
  config: text({
    describe: 'JSON file with these flags, {"maxIter": 20}; flags win',
    group: 'Options:',
    alias: 'c',
  }),
  force: forceOption,
  profile: profileOption,
  trace: traceOption,
  report: reportOption,
  ...commonOptions,
};

type TuneValues = Values<typeof options>;

export const tune = defineCommand({
  summary: 'Search for good parameters and train with the best',
  positionals: [
    {
      name: 'ratings',
      describe: 'files (Parquet, CSV, TSV, "::", NDJSON, Arrow), folders of them or quoted globs',
      required: true,
      many: true,
    },
  ],
  options,
  examples: [
    ['tune ratings/ --model-dir model', 'thirty trials of the usual parameters'],
    [
      "tune ratings/ --model-dir model --try 'rank=8,16,32 reg-param=0.01,0.03,0.1'",
      'all combinations of these',
    ],
    [
      "tune ratings/ --model-dir model --search halving --trials 81 --try 'rank=4..128 reg-param=0.002..0.5'",
      'many trials, most of them short',
    ],
    [
      'tune plays/ --model-dir model --implicit --metric ndcg@20 --report search.html',
      'by the quality of rankings, with a page to look at',
    ],
    ['tune ratings/ --model-dir model --resume', 'go on after an interruption'],
  ],
  epilog:
    'Ratings are read, numbered and sorted once for all trials. The same ratings, flags and seed try the same parameters with the same results.',
  run: async ({ values, given, positionals }, context) => {
    const { signal } = context;
    const { modelDir, force, resume } = values;
    const { algorithms, space } = spaceOf(values, given);
    const warnings: { code: string; text: string }[] = [];
    const onEvent: CommandContext['onEvent'] = (event) => {
      if (event.type === 'warning' && event.code !== undefined)
        warnings.push({ code: event.code, text: nameFlags(event.text, options) });
      context.onEvent(
        event.type === 'note' ? { ...event, text: inFlags(event.text, Object.keys(space)) } : event,
      );
    };
    const trialsPath = values.trialsFile ?? `${modelDir.replace(/\/+$/, '')}.trials.ndjson`;
    for (const output of [modelDir, trialsPath])
      await refuseOverlap(output, [...positionals.ratings, values.validation]);
    await checkWritable(modelDir);
    const { checkModelDirectory } = await import('../../connectors/model/model-store.ts');
    await checkModelDirectory(modelDir, force);
    const { TrainValidationSplit } = await import('../../api/validation/tuning/train-validation-split.ts');
    const { tuningMetricOf } = await import('../../api/validation/tuning/trial.ts');
    const { seed = 0, implicitPrefs = false } = values;
    const metric = tuningMetricOf(values.metric ?? (implicitPrefs ? 'ndcg@20' : 'rmse'));
    const splitting = {
      metric,
      validationFraction: values.validationFraction,
      seed,
      trials: values.trials,
      parallelism: values.parallel,
      warmStart: values.warmStart,
      ranking: values.ranking,
      rankUsers: values.rankUsers,
      ...(values.search === undefined ? {} : { search: values.search }),
    };
    const estimator = await estimatorOf(values, given, algorithms);
    // Without --try the defaults come first: a search is never worse than none.
    const defaults = estimator({}).params as unknown as TrialParams;
    const first =
      values.try === undefined
        ? [Object.fromEntries(Object.keys(space).map((name) => [name, defaults[name]]))]
        : [];
    const tuner = new TrainValidationSplit({ estimator, space, first, ...splitting });
    if (given.has('trials') && tuner.search === 'grid')
      throw new UsageError(
        '--trials acts only with --search random or halving: a grid has all combinations',
        { advice: 'Leave it out, or choose another search' },
      );
    await using session = await openSession(values, context);
    const ratings = await readNamed(session, positionals.ratings, values);
    const validation =
      values.validation === undefined ? undefined : await readNamed(session, values.validation, values);
    const { identityOf, TrialsFile } = await import('../sessions/trials-file.ts');
    const { parallelism: _parallelism, ranking: _ranking, rankUsers: _rankUsers, ...defined } = splitting;
    const meaningful = {
      ...heldOutRankingOptions,
      ...paramOptions,
      ...columnOptions,
      ...readOptions,
      ...policyOptions,
    };
    const params = Object.fromEntries(
      Object.entries(values).filter(([name]) => given.has(name as keyof TuneValues) && name in meaningful),
    );
    const definition = {
      ...defined,
      search: tuner.search,
      space,
      params,
      algorithm: values.algorithm ?? 'als',
      ratings: await identityOf(positionals.ratings),
      validation: values.validation === undefined ? null : await identityOf([values.validation]),
      version: packageInfo().version,
      rows: (await knownRows(ratings)) ?? null,
    };
    const file = await TrialsFile.open(trialsPath, JSON.parse(JSON.stringify(definition)), { resume, force });
    if (file.done.length > 0)
      onEvent({ type: 'note', text: `${file.done.length} trials of ${file.path} are not run again` });
    // Trials that have ended outlive the failure of a later one, or of saving, as they do a cancel.
    const keepTrials = async (error: unknown): Promise<never> => {
      if (file.written === 0 && file.done.length === 0) await file.remove();
      else
        onEvent({
          type: 'warning',
          text: `the trials that have ended are in ${file.path}; the same command with --resume goes on`,
        });
      throw error;
    };
    const tuning = await tuner
      .fit(ratings, { signal, onEvent, validation, done: file.done, onTrial: (trial) => file.add(trial) })
      .catch(keepTrials);
    await tuning.model.save(modelDir, { overwrite: force, signal }).catch(keepTrials);
    if (values.trialsFile === undefined) await file.remove();
    const totalSeconds = performance.now() / 1000;
    const { best, trials } = tuning;
    const report =
      values.report === undefined
        ? undefined
        : (await import('../report/search-page.ts')).searchPage(tuning, metric, {
            adapter: session.device.adapter,
            totalSeconds,
            warnings: warnings.map(({ text: warning }) => warning),
          });
    return {
      json: {
        command: 'tune',
        metric,
        search: tuner.search,
        best: trialJson(best, options),
        ranking: heldOutRankingJson(best.ranking),
        trials: trials.map((trial) => trialJson(trial, options)),
        warnings,
        seconds: { total: totalSeconds },
        peakRssBytes: process.resourceUsage().maxRSS * 1024,
        model: modelDir,
      },
      text: tuningText(tuning, metric, { modelDir, totalSeconds }),
      report,
    };
  },
});

/** A note with the names of parameters as flags have them. */
function inFlags(text: string, names: readonly string[]): string {
  return names.reduce(
    (changed, name) => changed.replaceAll(new RegExp(`(^|[ ,])${name} `, 'g'), `$1${flagName(name)} `),
    text,
  );
}

/** The space of the search and the algorithms in it. Throws UsageError for flags that exclude each other. */
function spaceOf(values: TuneValues, given: ReadonlySet<string>) {
  const usual = values.algorithm ?? 'als';
  const { space, algorithms } =
    values.try === undefined
      ? { space: others(usualSpace(usual, values), given), algorithms: [usual] }
      : readSpace(values.try, usual);
  if ('algorithm' in space && given.has('algorithm'))
    throw new UsageError('--algorithm and --try algorithm exclude each other', {
      advice: 'Leave one of them out',
    });
  if (given.has('validation') && given.has('validationFraction'))
    throw new UsageError('--validation and --validation-fraction exclude each other', {
      advice: 'Leave one of them out',
    });
  if (algorithms.length === 1) checkAlgorithm({ ...values, algorithm: algorithms[0] }, given);
  const twice = Object.keys(space).find((name) => given.has(name));
  if (twice !== undefined)
    throw new UsageError(`${twice} is both a flag and in --try`, { advice: 'Leave one of them out' });
  return { algorithms, space };
}

/** The space without the parameters that flags set. Throws UsageError where none is left. */
function others(space: SearchSpace, given: ReadonlySet<string>): SearchSpace {
  const left = Object.fromEntries(Object.entries(space).filter(([name]) => !given.has(name)));
  if (Object.keys(left).length > 0) return left;
  throw new UsageError('flags set all parameters that tune would search', {
    advice: "Leave one out, or name others with --try, such as --try 'max-iter=5,10,20'",
  });
}

/** Makes the trainer of a combination, with the flags as its other parameters. */
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
