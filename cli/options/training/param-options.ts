import { UsageError } from '../../../engine/errors.ts';
import { alsTable, type checkAlsParams } from '../../../operators/als/params.ts';
import type { Param } from '../../../operators/params/param.ts';
import { checkRules, defaultsOf, namesOf } from '../../../operators/params/table.ts';
import { sgdTable, type SgdParams } from '../../../operators/sgd/params.ts';
import { flagOf } from '../kinds.ts';
import { flagName, type Option } from '../option.ts';

type AlsParams = ReturnType<typeof checkAlsParams>;

/** SGD does not support `auto` for regParam. */
export type AllParams = Partial<Omit<AlsParams & SgdParams, 'regParam'> & Pick<AlsParams, 'regParam'>>;

export const tables = { als: alsTable, sgd: sgdTable } as const;
export type Algorithm = keyof typeof tables;

const described: Readonly<Record<string, Param>> = { ...sgdTable.params, ...alsTable.params };

/**
 * The flags of both algorithms' parameters. None has a fallback: the tables contain the defaults, and a
 * missing flag must be recognizable.
 */
export const paramOptions = Object.fromEntries(
  Object.entries(described).map(([name, param]) => [
    name,
    flagOf({
      group: 'Model:',
      ...param,
      fallback: undefined,
      defaultText: defaultText(name as keyof AllParams),
    }),
  ]),
) as { readonly [K in keyof Required<AllParams>]: Option<AllParams[K]> };

/** The parameters that only one algorithm has. */
export function namesOfOnly(algorithm: Algorithm): readonly string[] {
  const others: object = tables[algorithm === 'als' ? 'sgd' : 'als'].params;
  return namesOf<string>(tables[algorithm]).filter((name) => !(name in others));
}

/** The parameters of an algorithm that were given. */
export function givenParams<A extends Algorithm>(
  algorithm: A,
  values: AllParams,
  given: ReadonlySet<string>,
): Partial<A extends 'als' ? AlsParams : SgdParams> {
  const names: readonly (keyof AllParams)[] = namesOf<keyof AlsParams | keyof SgdParams>(
    tables[algorithm] as typeof sgdTable & typeof alsTable,
  );
  return Object.fromEntries(
    names.filter((name) => given.has(name)).map((name) => [name, values[name]]),
  ) as never;
}

/** Throws UsageError for a parameter's flag that has no effect with the others. */
export function checkParamFlags(algorithm: Algorithm, values: AllParams, given: ReadonlySet<string>): void {
  const named = (name: string, value?: unknown) =>
    `--${flagName(name)}${value === undefined ? '' : ` ${String(value)}`}`;
  if (algorithm === 'als') checkRules(alsTable, givenParams('als', values, given), named, true);
  else checkRules(sgdTable, givenParams('sgd', values, given), named, true);
}

/** "10", or "10; sgd: 20" if the algorithms differ. */
function defaultText(name: keyof AllParams): string | undefined {
  const [als, sgd] = [defaultsOf(alsTable), defaultsOf(sgdTable)].map(
    (defaults: AllParams) => defaults[name],
  );
  if (als !== undefined && sgd !== undefined && als !== sgd) return `${als}; sgd: ${sgd}`;
  const value = als ?? sgd;
  return (
    described[name].defaultText ??
    (value === undefined || typeof value === 'boolean' ? undefined : String(value))
  );
}

/**
 * Flags that --init-model fixes. Rows without new ratings keep their factors, so nothing can be added to λ.
 */
const modelFlags: readonly string[] = ['rank', 'biases', 'regOffset', 'biasDamping'];

interface AlgorithmValues extends AllParams {
  readonly algorithm: Algorithm | 'auto' | undefined;
  readonly initModel?: string | undefined;
}

/** The algorithm of a run: as given, else sgd with --init-model, else als. */
export function algorithmOf({
  algorithm,
  initModel,
}: Pick<AlgorithmValues, 'algorithm' | 'initModel'>): Algorithm | 'auto' {
  return algorithm ?? (initModel === undefined ? 'als' : 'sgd');
}

/** Throws UsageError for a flag that has no effect with the algorithm. */
export function checkAlgorithm(values: AlgorithmValues, given: ReadonlySet<string>): void {
  const algorithm = algorithmOf(values);
  const first = (names: readonly string[]) => {
    const found = names.find((name) => given.has(name));
    return found === undefined
      ? undefined
      : `--${values[found as keyof AlgorithmValues] === false ? 'no-' : ''}${flagName(found)}`;
  };
  const [ofSgd, ofAls] = [first(namesOfOnly('sgd')), first(namesOfOnly('als'))];
  if (values.initModel !== undefined && algorithm !== 'sgd')
    throw new UsageError(
      `--init-model cannot be used with --algorithm ${algorithm}: only sgd continues a model`,
      { advice: 'Leave --algorithm out, or give sgd' },
    );
  if (ofSgd !== undefined && algorithm !== 'sgd')
    throw new UsageError(`${ofSgd} cannot be used with --algorithm ${algorithm}`, {
      advice: 'Give --algorithm sgd, or leave the flag out',
    });
  if (ofAls !== undefined && algorithm !== 'als')
    throw new UsageError(`${ofAls} cannot be used with --algorithm ${algorithm}`, {
      advice: 'Give --algorithm als, or leave the flag out',
    });
  if (algorithm !== 'auto') checkParamFlags(algorithm, values, given);
  const fixed = values.initModel === undefined ? undefined : first(modelFlags);
  if (fixed !== undefined)
    throw new UsageError(`${fixed} cannot be used with --init-model, whose model fixes it`, {
      advice: 'Leave one of them out',
    });
}
