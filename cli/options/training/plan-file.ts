import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../index.ts';
import { withoutDefaults } from '../../../operators/params/table.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { checkSgdParams } from '../../../operators/sgd/params.ts';
import { readJsonObject } from '../json-file.ts';
import { text } from '../kinds.ts';
import { flagName } from '../option.ts';
import { type Algorithm, type AllParams, namesOfOnly, tables } from './param-options.ts';

const MOST_BYTES = 64 * 2 ** 20;

export const planOption = text({
  describe:
    'plan to run again: the JSON that plan --json prints, or a model; it brings the algorithm and its parameters',
  group: 'Model:',
});

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
  const foreign = namesOfOnly(algorithm === 'als' ? 'sgd' : 'als').find((name) => given.has(name));
  if (foreign !== undefined)
    throw new UsageError(`--${flagName(foreign)} contradicts the plan, which is of ${algorithm}`, {
      advice: 'Leave it out',
    });
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
