import { UsageError } from '../../../engine/errors.ts';
import { flagName } from '../option.ts';
import { type Algorithm, type AllParams, checkParamFlags, namesOfOnly } from './param-options.ts';

/**
 * Flags that --init-model fixes. Rows without new ratings keep their factors, so nothing can be added to λ.
 */
const modelFlags: readonly string[] = ['rank', 'biases', 'regOffset', 'biasDamping'];

export interface AlgorithmValues extends AllParams {
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
