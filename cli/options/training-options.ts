import { alsDefaults, MAXIMUM_RANK } from '../../operators/als/params.ts';
import { sgdDefaults } from '../../operators/sgd/params.ts';
import { UsageError } from '../../engine/errors.ts';
import { checkAlgorithm } from './check-algorithm.ts';
import { columnOptions, formatOption, policyOptions } from './data-options.ts';
import { choice, decimal, requiredText, text, toggle, wholeNumber } from './kinds.ts';
import { fakeDevicesOption, machineOptions, memoryBudgetOption, parquetBackendOption } from './machine-options.ts';
import type { Values } from './option.ts';
import { commonOptions, forceOption } from './output-options.ts';
import { initModelOption, sgdOptions } from './sgd-options.ts';

/** The flags of a training run, the same for `train` and `plan`. */
export const trainingOptions = {
  algorithm: choice({ describe: 'algorithm; auto chooses by the shape of the ratings and the device', group: 'Model:', choices: ['als', 'sgd', 'auto'], defaultText: 'als' }),
  rank: wholeNumber({ describe: `factors of a user and an item, 1 to ${MAXIMUM_RANK}`, group: 'Model:', least: 1, most: MAXIMUM_RANK, fallback: alsDefaults.rank }),
  maxIter: wholeNumber({ describe: 'iterations; each solves all items, then all users (sgd: visits each rating once)', group: 'Model:', least: 1, most: 1_000_000, defaultText: `${alsDefaults.maxIter}; sgd: ${sgdDefaults.maxIter}` }),
  regParam: decimal({ describe: 'λ, multiplied by the number of ratings of the user or item', group: 'Model:', least: 0, fallback: alsDefaults.regParam }),
  seed: wholeNumber({ describe: 'seed of the start and of --test-fraction; the same seed gives the same model', group: 'Model:', least: 0, most: 2 ** 32 - 1, fallback: alsDefaults.seed }),
  solver: choice({ describe: 'solve rows exactly, by conjugate gradients, or by the faster of the two', group: 'Model:', choices: ['auto', 'cholesky', 'cg'], fallback: alsDefaults.solver }),
  cgSteps: wholeNumber({ describe: 'steps of conjugate gradients a row', group: 'Model:', least: 1, most: 1000, fallback: alsDefaults.cgSteps }),
  biases: toggle({ describe: 'learn the mean and a bias of each user and item beside the factors', group: 'Model:' }),
  nonnegative: toggle({ describe: 'keep all factors at 0 or above (biases are free); on the CPU', group: 'Model:' }),
  precision: choice({ describe: 'precision of the factors that a GPU gathers; sums are float32', group: 'Model:', choices: ['auto', 'f32', 'f16'], fallback: alsDefaults.precision }),
  kernel: text({ describe: "GPU kernel that solves the rows; without it the device's choice", group: 'Model:' }),
  ...sgdOptions,
  coldStart: choice({ describe: 'predictions for unknown users and items: NaN, or left out', group: 'Model:', choices: ['nan', 'drop'], fallback: 'nan' }),
  test: text({ describe: 'ratings that are not trained on, to measure the error on', group: 'Held-out ratings:' }),
  testFraction: decimal({ describe: 'hold out this part of the ratings, such as 0.1', group: 'Held-out ratings:', above: 0, below: 1 }),
  earlyStop: wholeNumber({ describe: 'end after this many iterations without a better test RMSE; the best is kept', group: 'Held-out ratings:', least: 1, most: 1_000_000 }),
  targetRmse: decimal({ describe: 'end once the test RMSE is at most this', group: 'Held-out ratings:', above: 0 }),
  ...columnOptions,
  format: formatOption,
  ...policyOptions,
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  parquetBackend: parquetBackendOption,
  config: text({ describe: 'JSON file with these flags, {"rank": 64}; flags win', group: 'Options:', alias: 'c' }),
  ...commonOptions,
};

export const modelDirOption = requiredText({ describe: 'folder that the model is written to', group: 'Required:' });

export const trainOptions = { modelDir: modelDirOption, ...trainingOptions, initModel: initModelOption, force: forceOption };

export type TrainingValues = Values<typeof trainingOptions>;

/** Throws UsageError for a flag that cannot act beside the others. */
export function checkTraining(values: TrainingValues & { readonly initModel?: string | undefined }, given: ReadonlySet<string>): void {
  checkAlgorithm(values, given);
  if (values.test !== undefined && values.testFraction !== undefined) {
    throw new UsageError('--test and --test-fraction exclude each other', { advice: 'Leave one of them out' });
  }
  const heldOut = values.test !== undefined || values.testFraction !== undefined;
  for (const [flag, value] of [['--early-stop', values.earlyStop], ['--target-rmse', values.targetRmse]] as const) {
    if (value !== undefined && !heldOut) throw new UsageError(`${flag} needs held-out ratings`, { advice: 'Give them with --test PATH or --test-fraction 0.1' });
  }
  if (values.nonnegative && values.solver === 'cg') {
    throw new UsageError('--solver cg cannot act with --nonnegative', { advice: 'Leave --solver at auto: rows are solved exactly over x >= 0' });
  }
  if (given.has('cgSteps') && values.nonnegative) throw new UsageError('--cg-steps does nothing with --nonnegative', { advice: 'Leave one of them out' });
  if (given.has('cgSteps') && values.solver === 'cholesky') throw new UsageError('--cg-steps does nothing with --solver cholesky', { advice: 'Leave one of them out' });
  if (values.device === 'cpu') {
    if (values.precision === 'f16') throw new UsageError('--precision f16 cannot act with --device cpu, which computes in float32', { advice: 'Leave one of them out' });
    if (values.kernel !== undefined) throw new UsageError('--kernel cannot act with --device cpu: it names a kernel for GPUs', { advice: 'Leave one of them out' });
    if (values.deviceMemory !== undefined) throw new UsageError('--device-memory cannot act with --device cpu', { advice: 'Leave one of them out; --memory-budget bounds the memory of the process' });
  }
  if (values.nonnegative && values.device.startsWith('gpu')) throw new UsageError(`--nonnegative cannot act with --device ${values.device}: those factors are solved on the CPU only`, { advice: 'Leave one of them out' });
  if (values.timestampCol !== undefined && values.onDuplicates !== 'last') {
    throw new UsageError('--timestamp-col acts only with --on-duplicates last', { advice: 'Leave one of them out' });
  }
}
