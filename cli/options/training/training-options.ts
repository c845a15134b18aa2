import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointParams } from '../../../api/option-params.ts';
import { UsageError } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../index.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { withoutDefaults } from '../../../operators/params/table.ts';
import { checkSgdParams } from '../../../operators/sgd/params.ts';
import { attributeOptions, checkAttributeFlags } from '../data/attribute-options.ts';
import { columnOptions, policyOptions, readOptions } from '../data/data-options.ts';
import {
  checkHeldOut,
  heldOutOptions,
  heldOutRankingOptions,
  testOutputOption,
} from '../data/held-out-options.ts';
import { checkNameFlags, namesAndGenreOptions, type NameValues } from '../data/name-options.ts';
import { choice, flagsOf, requiredText, text } from '../kinds.ts';
import {
  fakeDevicesOption,
  machineOptions,
  memoryBudgetOption,
  parquetBackendOption,
  spillDirOption,
} from '../machine-options.ts';
import { flagName, grouped, refuseFlags, type Values } from '../option.ts';
import { commonOptions, forceOption, profileOption, reportOption, traceOption } from '../output-options.ts';
import { readJsonObject } from '../read-values.ts';
import {
  algorithmOf,
  checkAlgorithm,
  paramOptions,
  type Algorithm,
  type AllParams,
  namesOfOnly,
  tables,
} from './param-options.ts';

const planOption = text(
  'plan to run again: the JSON that plan --json prints, or a model; it brings the algorithm and its parameters',
  { group: 'Model:' },
);

/** The flags of a training run, the same for `train` and `plan`. */
export const trainingOptions = {
  ...grouped('Model:', {
    algorithm: choice('algorithm; auto chooses by the shape of the ratings and the device', {
      choices: ['als', 'sgd', 'auto'],
      defaultText: 'als',
    }),
    coldStart: choice('predictions for unknown users and items: NaN, or left out', {
      choices: ['nan', 'drop'],
      fallback: 'nan',
    }),
  }),
  ...heldOutOptions,
  ...paramOptions,
  ...columnOptions,
  ...readOptions,
  ...attributeOptions,
  ...policyOptions,
  ...flagsOf(checkpointParams, { group: 'Checkpoints:' }),
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  spillDir: spillDirOption,
  parquetBackend: parquetBackendOption,
  ...grouped('Options:', {
    config: text('JSON file with these flags, {"rank": 64}; flags win', { alias: 'c' }),
  }),
  ...commonOptions,
};

/** Only for `train` and `plan`. */
export const initModelOption = text(
  'model to update with these ratings as new ones; by default 2 epochs of SGD from a rate of 0.002, ' +
    "with the model's λ only for new users and items; for implicit data one round of ALS",
  { group: 'Model:' },
);

export const modelDirOption = requiredText('folder that the model is written to', { group: 'Required:' });

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
  const { initModel, checkpointDir, precision } = values;
  const isDrawn = values.testFraction !== undefined || values.testLeaveOut !== undefined;
  const refuse = (name: string, fault: string, advice = 'Leave one of them out') =>
    refuseFlags(given, [name], fault, advice);
  checkNameFlags(values);
  if (values.report === undefined)
    refuse(
      'itemNames',
      'acts only with --report, whose page shows the names',
      'Leave it out, or give --report FILE; recommend takes --item-names too',
    );
  checkAlgorithm(values, given);
  checkAttributeFlags(values, given);
  const attributes = ['itemAttributes', 'userAttributes'];
  if (initModel !== undefined)
    for (const name of attributes)
      refuse(name, 'cannot be used with --init-model, whose model keeps its attributes');
  if (algorithmOf(values) === 'sgd')
    for (const name of attributes)
      refuse(name, 'cannot be used with --algorithm sgd, which does not train with attributes');
  checkHeldOut(values, given);
  if (initModel !== undefined && values.ranking)
    refuse(
      'ranking',
      'cannot be used with --init-model: the ratings that the model was trained on before are not known',
      'Rank afterwards: evaluate MODEL TEST --ranking --exclude RATINGS',
    );
  if (!isDrawn)
    refuse(
      'testOutput',
      'acts only with --test-fraction or --test-leave-out',
      'Leave it out, or say how many ratings are held out',
    );
  if (!isDrawn && values.test === undefined)
    for (const name of ['ranking', 'rankUsers'])
      refuse(name, 'needs held-out ratings', 'Give them with --test PATH or --test-fraction 0.1');
  if (checkpointDir === undefined)
    for (const name of ['checkpointInterval', ...(values.resume ? ['resume'] : [])])
      refuse(name, 'acts only with --checkpoint-dir', 'Give both, or leave it out');
  if (initModel !== undefined)
    refuse('checkpointDir', 'cannot be used with --init-model, whose few epochs are run again in a moment');
  if (values.device !== 'cpu') return;
  if (precision === 'f16' || precision === 'int8')
    refuse('precision', `${precision} cannot be used with --device cpu, which computes in float32`);
  refuse('kernel', 'cannot be used with --device cpu: it names a kernel for GPUs');
  refuse(
    'deviceMemory',
    'cannot be used with --device cpu',
    'Leave one of them out; --memory-budget bounds the memory of the process',
  );
}

type CheckpointValues = Pick<TrainingValues, keyof typeof checkpointParams>;

/** The flags as options of `fit`. */
export function fitCheckpoints({
  checkpointDir,
  checkpointInterval,
  resume,
}: CheckpointValues): Partial<CheckpointValues> {
  return checkpointDir === undefined ? {} : { checkpointDir, checkpointInterval, resume };
}

const MOST_BYTES = 64 * 2 ** 20;

interface PlannedValues extends AllParams {
  readonly plan: string | undefined;
  readonly algorithm: Algorithm | 'auto' | undefined;
  readonly initModel: string | undefined;
}

/**
 * The flags with the algorithm and parameters of the plan in the file of --plan, and the plan. Throws
 * UsageError for a file without a plan and for a flag that contradicts it.
 */
export async function withPlan<V extends PlannedValues>(
  values: V,
  given: ReadonlySet<string>,
): Promise<{ readonly values: V; readonly given: ReadonlySet<string>; readonly plan?: JsonObject }> {
  if (values.plan === undefined) return { values, given };
  if (values.initModel !== undefined)
    throw new UsageError('--plan cannot be used with --init-model: it is of training that starts anew', {
      advice: 'Leave one of them out',
    });
  const { plan, algorithm, params } = await readPlan(fileOf(values.plan));
  if (values.algorithm !== undefined && values.algorithm !== algorithm)
    throw new UsageError(`--algorithm ${values.algorithm} contradicts the plan, which is of ${algorithm}`, {
      advice: 'Leave it out',
    });
  const others = namesOfOnly(algorithm === 'als' ? 'sgd' : 'als');
  refuseFlags(given, others, `contradicts the plan, which is of ${algorithm}`, 'Leave it out');
  const names = Object.keys(tables[algorithm].params) as (keyof AllParams)[];
  const other = names.find((name) => given.has(name) && values[name] !== params[name]);
  if (other !== undefined)
    throw new UsageError(
      `--${flagName(other)} ${String(values[other])} contradicts the plan, which has ${params[other] === undefined ? 'none' : String(params[other])}`,
      { advice: 'Leave it out, or make the plan anew' },
    );
  const set = withoutDefaults<AllParams>(tables[algorithm] as never, params);
  const kept = [...given].filter((name) => !(names as string[]).includes(name));
  return {
    values: { ...values, ...params, algorithm },
    given: new Set([...kept, 'algorithm', ...Object.keys(set)]),
    plan,
  };
}

/** The file with a plan, in a model's folder or in the folder of its metadata. */
function fileOf(path: string): string {
  return (
    [join(path, 'metadata/part-00000'), join(path, 'part-00000')].find((file) => existsSync(file)) ?? path
  );
}

/** Reads a plan from a file, including the output of `plan --json` and a model's metadata. */
async function readPlan(
  file: string,
): Promise<{ readonly plan: JsonObject; readonly algorithm: Algorithm; readonly params: AllParams }> {
  const { givenPlan } = await import('../../../api/training/plans/explained-plan.ts');
  const content = readJsonObject(file, 'plan', MOST_BYTES, 'Give what plan --json prints');
  const { factorflow } = content as { readonly factorflow?: { readonly plan?: unknown } | null };
  const plan = (
    content.planVersion === undefined ? (content.plan ?? factorflow?.plan ?? content) : content
  ) as JsonObject;
  try {
    const { algorithm, params } = givenPlan(plan);
    if (algorithm === 'als')
      return { plan, algorithm, params: checkAlsParams(withoutDefaults(tables.als, params)) };
    if (algorithm === 'sgd')
      return { plan, algorithm, params: checkSgdParams(withoutDefaults(tables.sgd, params)) };
    throw new UsageError('this plan is of no algorithm that train runs: als or sgd');
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(error.summary, { ...error.details, file });
  }
}
