import { UsageError } from '../../../engine/errors.ts';
import { checkAlgorithm } from './check-algorithm.ts';
import { checkCheckpoints, checkpointOptions } from './checkpoint-options.ts';
import { columnOptions, policyOptions } from '../data/data-options.ts';
import {
  checkHeldOut,
  heldOutOptions,
  heldOutRankingOptions,
  testOutputOption,
} from '../data/held-out-options.ts';
import { checkNameFlags, namesAndGenreOptions, type NameValues } from '../data/name-options.ts';
import { choice, requiredText, text } from '../kinds.ts';
import {
  fakeDevicesOption,
  machineOptions,
  memoryBudgetOption,
  parquetBackendOption,
  spillDirOption,
} from '../machine-options.ts';
import { flagName, type Values } from '../option.ts';
import { commonOptions, forceOption, profileOption, reportOption, traceOption } from '../output-options.ts';
import { paramOptions } from './param-options.ts';
import { planOption } from './plan-file.ts';
import { readOptions } from '../data/text-options.ts';

/** The flags of a training run, the same for `train` and `plan`. */
export const trainingOptions = {
  algorithm: choice({
    describe: 'algorithm; auto chooses by the shape of the ratings and the device',
    group: 'Model:',
    choices: ['als', 'sgd', 'auto'],
    defaultText: 'als',
  }),
  coldStart: choice({
    describe: 'predictions for unknown users and items: NaN, or left out',
    group: 'Model:',
    choices: ['nan', 'drop'],
    fallback: 'nan',
  }),
  ...heldOutOptions,
  ...paramOptions,
  ...columnOptions,
  ...readOptions,
  ...policyOptions,
  ...checkpointOptions,
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  spillDir: spillDirOption,
  parquetBackend: parquetBackendOption,
  config: text({
    describe: 'JSON file with these flags, {"rank": 64}; flags win',
    group: 'Options:',
    alias: 'c',
  }),
  ...commonOptions,
};

/** Only for `train` and `plan`. */
export const initModelOption = text({
  describe:
    'model to update with these ratings as new ones; by default 2 epochs of SGD from a rate of 0.002, ' +
    "with the model's λ only for new users and items; for implicit data one round of ALS",
  group: 'Model:',
});

export const modelDirOption = requiredText({
  describe: 'folder that the model is written to',
  group: 'Required:',
});

export const trainOptions = {
  modelDir: modelDirOption,
  ...trainingOptions,
  initModel: initModelOption,
  testOutput: testOutputOption,
  ...heldOutRankingOptions,
  plan: planOption,
  force: forceOption,
  profile: profileOption,
  trace: traceOption,
  report: reportOption,
  ...namesAndGenreOptions,
};

export type TrainingValues = Values<typeof trainingOptions>;
export type TrainCommandValues = Values<typeof trainOptions>;

/** Throws UsageError for a flag that has no effect with the others. */
export function checkTraining(
  values: TrainingValues &
    Partial<Pick<TrainCommandValues, 'initModel' | 'ranking' | 'testOutput' | 'report' | keyof NameValues>>,
  given: ReadonlySet<string>,
): void {
  checkNames(values);
  checkAlgorithm(values, given);
  checkHeldOut(values, given);
  checkUsesOfHeldOut(values, given);
  checkCheckpoints(values);
  if (values.device === 'cpu') {
    if (values.precision === 'f16' || values.precision === 'int8')
      throw new UsageError(
        `--precision ${values.precision} cannot be used with --device cpu, which computes in float32`,
        { advice: 'Leave one of them out' },
      );
    if (values.kernel !== undefined)
      throw new UsageError('--kernel cannot be used with --device cpu: it names a kernel for GPUs', {
        advice: 'Leave one of them out',
      });
    if (values.deviceMemory !== undefined)
      throw new UsageError('--device-memory cannot be used with --device cpu', {
        advice: 'Leave one of them out; --memory-budget bounds the memory of the process',
      });
  }
}

/** Throws UsageError for flags of item names without a report that shows them. */
function checkNames({
  report,
  itemNames,
  itemNamesIdCol,
  itemNamesCol,
  itemNamesGenreCol,
}: Partial<Pick<TrainCommandValues, 'report' | keyof NameValues>>): void {
  checkNameFlags({ itemNames, itemNamesIdCol, itemNamesCol, itemNamesGenreCol });
  if (itemNames !== undefined && report === undefined)
    throw new UsageError('--item-names acts only with --report, whose page shows the names', {
      advice: 'Leave it out, or give --report FILE; recommend takes --item-names too',
    });
}

/**
 * Throws UsageError for flags that need held-out ratings, or ratings held out at random or by time, if there
 * are none.
 */
function checkUsesOfHeldOut(
  values: Pick<TrainingValues, 'test' | 'testFraction' | 'testLeaveOut'> &
    Partial<Pick<TrainCommandValues, 'initModel' | 'ranking' | 'testOutput'>>,
  given: ReadonlySet<string>,
): void {
  if (values.ranking && values.initModel !== undefined)
    throw new UsageError(
      '--ranking cannot be used with --init-model: the ratings that the model was trained on before ' +
        'are not known',
      { advice: 'Rank afterwards: evaluate MODEL TEST --ranking --exclude RATINGS' },
    );
  const isHeldOut =
    values.test !== undefined || values.testFraction !== undefined || values.testLeaveOut !== undefined;
  const idle = isHeldOut ? undefined : (['ranking', 'rankUsers'] as const).find((name) => given.has(name));
  if (
    values.testOutput !== undefined &&
    values.testFraction === undefined &&
    values.testLeaveOut === undefined
  )
    throw new UsageError('--test-output acts only with --test-fraction or --test-leave-out', {
      advice: 'Leave it out, or say how many ratings are held out',
    });
  if (idle !== undefined)
    throw new UsageError(`--${flagName(idle)} needs held-out ratings`, {
      advice: 'Give them with --test PATH or --test-fraction 0.1',
    });
}
