import { UsageError } from '../../engine/errors.ts';
import { spelled } from '../../engine/nearest.ts';
import { nearestName } from './nearest-name.ts';
import {
  checkValues,
  type ChoiceParam,
  type NumberParam,
  type OneOrTwo,
  type PairParam,
  type Param,
  type TextParam,
  type ToggleParam,
} from './param.ts';

/**
 * True if T contains a template such as `ndcg@${number}`, with infinitely many values. Parameters of such
 * types are described without a list of choices, since Record<T, ...> would require none of the values.
 */
type HasPattern<T extends string> = true extends (
  T extends string ? (Record<never, never> extends Record<T, true> ? true : false) : never
)
  ? true
  : false;

type KindOf<T> = [T] extends [boolean]
  ? ToggleParam
  : [T] extends [number]
    ? NumberParam
    : [T] extends [number | 'auto']
      ? [T] extends [string]
        ? ChoiceParam<T>
        : NumberParam<'auto'>
      : [T] extends [OneOrTwo]
        ? PairParam
        : [T] extends [string]
          ? HasPattern<T> extends true
            ? TextParam
            : ChoiceParam<T>
          : never;

/** A description of each parameter of P. Required parameters have a fallback, optional ones have none. */
export type ParamsOf<P> = {
  readonly [K in keyof P]-?: KindOf<NonNullable<P[K]>> &
    (undefined extends P[K] ? { readonly fallback?: undefined } : { readonly fallback: P[K] });
};

/**
 * A parameter that has no effect in combination with others: it is refused if it is given and `when` holds.
 */
export interface Rule<P> {
  readonly refused: keyof P & string;
  readonly when: (params: P) => boolean;
  /**
   * `named` returns the name of a parameter in the API or on the command line: "solver cg" or "--solver cg".
   */
  readonly message: (named: (name: keyof P & string, value?: unknown) => string, params: P) => string;
  readonly advice: string;
  /** True if only the command line refuses the parameter. */
  readonly onlyFlags?: boolean;
}

/** Description of an algorithm's parameters, for constructors, checks, flags and documentation. */
export interface ParamTable<P> {
  readonly algorithm: 'ALS' | 'SGD';
  readonly params: ParamsOf<P>;
  readonly rules: readonly Rule<P>[];
  /** Defaults that differ from the fallbacks, depending on the other parameters. */
  readonly dependent?: (given: Partial<P>) => Partial<P>;
}

export function namesOf<N extends string>(table: {
  readonly params: Readonly<Record<N, Param>>;
}): readonly N[] {
  return Object.keys(table.params) as N[];
}

/** Defaults, depending on the other parameters. */
export function defaultsOf<P>({ params, dependent }: ParamTable<P>, given: Partial<P> = {}): P {
  const fallbacks = Object.fromEntries(
    entriesOf(params)
      .filter(([, { fallback }]) => fallback !== undefined)
      .map(([name, { fallback }]) => [name, fallback]),
  );
  return { ...fallbacks, ...dependent?.(given) } as P;
}

/**
 * Fills in defaults. Throws UsageError that names parameter and value. `others`: further names that the
 * caller accepts.
 */
export function checkParams<P extends object>(
  table: ParamTable<P>,
  given: Partial<P>,
  others: readonly string[] = [],
): P {
  const names = Object.keys(table.params);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const all = [...names, ...others];
    const advice = spelled(nearestName(unknown, all), `There are: ${all.join(', ')}`);
    throw new UsageError(`unknown ${table.algorithm} parameter ${unknown}`, { advice });
  }
  const set = defined(given);
  const params: P = { ...defaultsOf(table, set), ...set };
  checkValues(table.params, params);
  checkRules(table, set, (name, value) => (value === undefined ? name : `${name} ${String(value)}`));
  return params;
}

/** Throws UsageError for a given parameter that has no effect in combination with the others. */
export function checkRules<P extends object>(
  table: ParamTable<P>,
  given: Partial<P>,
  named: Parameters<Rule<P>['message']>[0],
  ofFlags = false,
): void {
  const params: P = { ...defaultsOf(table, given), ...given };
  const broken = table.rules.find(
    ({ refused, when, onlyFlags = false }) =>
      given[refused] !== undefined && (ofFlags || !onlyFlags) && when(params),
  );
  if (broken) throw new UsageError(broken.message(named, params), { advice: broken.advice });
}

/** Parameters that have no effect in combination with the others, by the rules. */
export function idleParams<P extends object>({ rules }: ParamTable<P>, params: P): ReadonlySet<string> {
  return new Set(rules.filter(({ when }) => when(params)).map(({ refused }) => refused));
}

/** The parameters that differ from their defaults. */
export function withoutDefaults<P extends object>(table: ParamTable<P>, params: Partial<P>): Partial<P> {
  // A parameter's default may depend on the other given parameters, so it is computed as if only this one
  // were missing.
  const isDefault = (name: string, value: unknown) =>
    isSame(value, defaultsOf(table, { ...params, [name]: undefined })[name as keyof P]);
  return Object.fromEntries(
    Object.entries(defined(params)).filter(([name, value]) => !isDefault(name, value)),
  ) as Partial<P>;
}

/** True for the same value, and for the same two numbers. */
function isSame(left: unknown, right: unknown): boolean {
  return (
    left === right ||
    (Array.isArray(left) &&
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((value, i) => value === right[i]))
  );
}

function defined<P extends object>(given: Partial<P>): Partial<P> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<P>;
}

function entriesOf(params: object): [string, Param][] {
  return Object.entries(params) as [string, Param][];
}
