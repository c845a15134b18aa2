/**
 * Parameters and options as data: kind of value, bounds, default and help text. Checks of the API, flags, fields of
 * requests and the tables of the Python and Spark packages follow from these descriptions.
 */
import { UsageError } from '../../engine/errors.ts';
import { formatCount, shown } from '../../engine/format.ts';

interface Described<T> {
  /** One phrase, for the flag's line in --help and in docs/reference/cli.md. */
  readonly help: string;
  /** The parameter's name, with its symbol if it has one, in messages about the range: "regParam (λ)". */
  readonly called?: string;
  readonly fallback?: T;
  /** Text for --help if there is no fallback. */
  readonly defaultText?: string;
  /** Heading of the flag, if it differs from the others' of its table. */
  readonly group?: 'Model:' | 'Held-out ratings:';
}

/** Minimum and maximum; `above` and `below` exclude the bound itself. */
interface Bounds {
  readonly least?: number;
  readonly most?: number;
  readonly above?: number;
  readonly below?: number;
}

export interface NumberParam<W extends string = string> extends Described<number | W>, Bounds {
  readonly kind: 'whole number' | 'number';
  /** A word that may replace the number, such as `auto`. */
  readonly or?: W;
}

/** A number, or two for users and items. */
export interface PairParam extends Described<OneOrTwo>, Bounds {
  readonly kind: 'one or two numbers';
}

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

export type Param = NumberParam | PairParam | ChoiceParam | ToggleParam | TextParam;

export type Params = Readonly<Record<string, Param>>;

export type OneOrTwo = number | readonly [number, number];

/** The values for users and for items. */
export function forSides(value: OneOrTwo): { readonly users: number; readonly items: number } {
  const [users, items] = typeof value === 'number' ? [value, value] : value;
  return { users, items };
}

/** A seed of 32 bits. */
export const seedParam = {
  kind: 'whole number',
  least: 0,
  most: 2 ** 32 - 1,
  fallback: 0,
} as const satisfies Partial<NumberParam>;

/** Throws UsageError for the first of the given values that its parameter cannot have. */
export function checkValues(params: Params, given: object): void {
  const values = given as Readonly<Record<string, unknown>>;
  for (const [name, param] of Object.entries(params))
    if (values[name] !== undefined) checkValue(name, param, values[name]);
}

export function checkValue(name: string, param: Param, value: unknown): void {
  if (!isValueOf(param, value))
    throw new UsageError(`${param.called ?? name} must be ${meaningOf(param)}, got ${shown(value)}`);
}

export function isValueOf(param: Param, value: unknown): boolean {
  switch (param.kind) {
    case 'choice':
      return param.choices.includes(value as string);
    case 'toggle':
      return typeof value === 'boolean';
    case 'text':
      return typeof value === 'string' && value !== '';
    case 'one or two numbers':
      return (Array.isArray(value) && value.length === 2 ? value : [value]).every((one) =>
        isWithin(param, one),
      );
    case 'number':
      return isWithin(param, value) || isWord(param, value);
    case 'whole number':
      return (Number.isSafeInteger(value) && isWithin(param, value)) || isWord(param, value);
  }
}

function isWord({ or }: NumberParam, value: unknown): boolean {
  return or !== undefined && value === or;
}

function isWithin(
  { least = -Infinity, most = Infinity, above = -Infinity, below = Infinity }: Bounds,
  given: unknown,
): boolean {
  const value = Number.isFinite(given) ? (given as number) : NaN;
  return value >= least && value <= most && value > above && value < below;
}

/** The values that a parameter may have, for messages: "a number of 0 or more". `two`: how two numbers are written. */
export function meaningOf(param: Param, two = 'two for users and items'): string {
  switch (param.kind) {
    case 'choice':
      return listed(param.choices);
    case 'toggle':
      return 'true or false';
    case 'text':
      return param.meaning;
    case 'one or two numbers':
      return `a number${range(param)}, or ${two}`;
    default:
      return `${param.or === undefined ? '' : `${param.or} or `}a ${param.kind}${range(param)}`;
  }
}

function range({ least, most, above, below }: Bounds): string {
  if (least !== undefined && most !== undefined) return ` from ${formatted(least)} to ${formatted(most)}`;
  if (above !== undefined && below !== undefined)
    return ` above ${formatted(above)} and below ${formatted(below)}`;
  if (above !== undefined && most !== undefined)
    return ` above ${formatted(above)} and at most ${formatted(most)}`;
  if (least !== undefined) return ` of ${formatted(least)} or more`;
  return above === undefined ? '' : ` above ${formatted(above)}`;
}

const formatted = (bound: number) => (Number.isInteger(bound) ? formatCount(bound) : String(bound));

/** Example: "auto, cholesky or cg" */
export function listed(choices: readonly string[]): string {
  return choices.length < 2 ? choices.join('') : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}
