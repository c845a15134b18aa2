import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { spelled } from '../../engine/nearest.ts';
import { nearestName } from './nearest-name.ts';

interface Described<T> {
  /** One phrase, for the flag's line in --help and in docs/reference/cli.md. */
  readonly help: string;
  /** Heading of the flag; default 'Model:'. */
  readonly group?: 'Model:' | 'Held-out ratings:';
  /** The parameter's name, with its symbol if it has one, in messages about the range: "regParam (λ)". */
  readonly called?: string;
  readonly fallback?: T;
  /** Text for --help if there is no fallback. */
  readonly defaultText?: string;
}

/** Minimum and maximum; `above` excludes the bound itself. */
interface Bounds {
  readonly least?: number;
  readonly most?: number;
  readonly above?: number;
}

export interface NumberParam extends Described<number>, Bounds {
  readonly kind: 'whole number' | 'number';
}

/** A whole number, or `auto`. */
export interface CountParam extends Described<number | 'auto'> {
  readonly kind: 'whole number or auto';
  readonly least: number;
  readonly most: number;
}

/** A number, or `auto`. */
export interface NumberOrAutoParam extends Described<number | 'auto'> {
  readonly kind: 'number or auto';
  readonly least: number;
}

/** A number, or two for users and items. */
export interface PairParam extends Described<OneOrTwo> {
  readonly kind: 'one or two numbers';
  readonly least?: number;
}

export type OneOrTwo = number | readonly [number, number];

export interface ChoiceParam<C extends string = string> extends Described<C> {
  readonly kind: 'choice';
  readonly choices: readonly C[];
}

export interface ToggleParam extends Described<boolean> {
  readonly kind: 'toggle';
  /** Line of the flag --no-<name> in --help, if the parameter is on by default. */
  readonly off?: string;
}

export interface TextParam extends Described<string> {
  readonly kind: 'text';
  /** Example: "the name of a GPU kernel" */
  readonly meaning: string;
}

export type Param =
  | NumberParam
  | CountParam
  | NumberOrAutoParam
  | PairParam
  | ChoiceParam
  | ToggleParam
  | TextParam;

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
        : CountParam | NumberOrAutoParam
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

export function namesOf<N extends string>({
  params,
}: {
  readonly params: Readonly<Record<N, Param>>;
}): readonly N[] {
  return Object.keys(params) as N[];
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
  for (const [name, param] of entriesOf(table.params))
    if (params[name as keyof P] !== undefined) checkParam(name, param, params[name as keyof P]);
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

/** Example: "auto, cholesky or cg" */
export function listed(choices: readonly string[]): string {
  return choices.length < 2 ? choices.join('') : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}

function defined<P extends object>(given: Partial<P>): Partial<P> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<P>;
}

function entriesOf(params: object): [string, Param][] {
  return Object.entries(params) as [string, Param][];
}

function checkParam(name: string, param: Param, value: unknown): void {
  if (isOf(param, value)) return;
  throw new UsageError(`${param.called ?? name} must be ${meaningOf(param)}, got ${shown(value)}`);
}

/** The values for users and for items. */
export function forSides(value: OneOrTwo): { readonly users: number; readonly items: number } {
  const [users, items] = typeof value === 'number' ? [value, value] : value;
  return { users, items };
}

function isOf(param: Param, value: unknown): boolean {
  switch (param.kind) {
    case 'choice':
      return param.choices.includes(value as string);
    case 'toggle':
      return typeof value === 'boolean';
    case 'text':
      return typeof value === 'string' && value !== '';
    case 'one or two numbers':
      return oneOrTwo(value).every((one) => isNumberWithin(param, one));
    case 'number':
      return isNumberWithin(param, value);
    case 'number or auto':
      return value === 'auto' || isNumberWithin(param, value);
    case 'whole number':
      return Number.isInteger(value) && isNumberWithin(param, value);
    case 'whole number or auto':
      return value === 'auto' || (Number.isInteger(value) && isNumberWithin(param, value));
  }
}

function oneOrTwo(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.length === 2 ? value : [value];
}

function isNumberWithin(
  { least = -Infinity, most = Infinity, above = -Infinity }: Bounds,
  value: unknown,
): boolean {
  return Number.isFinite(value) && Number(value) >= least && Number(value) <= most && Number(value) > above;
}

/** The values that a parameter may have, for messages: "a number >= 0". */
export function meaningOf(param: Param): string {
  if (param.kind === 'choice') return listed(param.choices);
  if (param.kind === 'toggle') return 'true or false';
  if (param.kind === 'text') return param.meaning;
  if (param.kind === 'one or two numbers')
    return `a number${param.least === undefined ? '' : ` >= ${param.least}`}, or two for users and items`;
  if (param.kind === 'whole number or auto')
    return `auto or a whole number from ${param.least} to ${param.most.toLocaleString('en')}`;
  if (param.kind === 'number or auto') return `auto or a number >= ${param.least}`;
  const { least, most, above } = param;
  if (least !== undefined && most !== undefined)
    return `a ${param.kind} from ${least} to ${most.toLocaleString('en')}`;
  return `a ${param.kind}${least === undefined ? '' : ` >= ${least}`}${above === undefined ? '' : ` > ${above}`}`;
}
