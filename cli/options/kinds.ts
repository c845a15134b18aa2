import { UsageError } from '../../engine/errors.ts';
import { listed as list, type OneOrTwo } from '../../operators/params/table.ts';
import type { Group, Option } from './option.ts';

interface Spec<F> {
  readonly describe: string;
  readonly group: Group;
  readonly alias?: string;
  readonly isList?: boolean;
  readonly fallback?: F;
  readonly defaultText?: string;
}

/** A flag without a value. */
export function toggle(spec: Spec<boolean>): Option<boolean> {
  const read = (given: unknown, flag: string) => {
    if (typeof given === 'boolean') return given;
    throw new UsageError(`${flag} is true or false, got ${shown(given)}`);
  };
  return { ...spec, isSwitch: true, fallback: false, read };
}

export function text<F extends string | undefined = undefined>(spec: Spec<F>): Option<string | F> {
  return { defaultText: spec.fallback, ...spec, fallback: spec.fallback as F, read: textOf };
}

/** A required text. */
export function requiredText(spec: Spec<never>): Option<string> {
  return { ...spec, required: true, fallback: '', read: textOf };
}

export function choice<const C extends string, F extends C | undefined = undefined>(
  spec: Spec<F> & { readonly choices: readonly C[] },
): Option<C | F> {
  const read = (given: unknown, flag: string) => {
    const found = spec.choices.find((candidate) => candidate === given);
    if (found !== undefined) return found;
    throw new UsageError(`${flag} must be ${list(spec.choices)}, got ${shown(given)}`);
  };
  return { defaultText: spec.fallback, ...spec, fallback: spec.fallback as F, read };
}

interface NumberSpec<F> extends Spec<F> {
  readonly least?: number;
  readonly most?: number;
  /** The bound itself is excluded. */
  readonly above?: number;
  readonly below?: number;
}

export function wholeNumber<F extends number | undefined = undefined>(
  spec: NumberSpec<F>,
): Option<number | F> {
  return numeric('a whole number', Number.isSafeInteger, spec);
}

/** A whole number, or a word such as `auto`. */
export function countOr<const W extends string>(
  word: W,
  {
    least,
    most = Number.MAX_SAFE_INTEGER,
    ...spec
  }: Spec<undefined> & { readonly least: number; readonly most?: number },
): Option<number | W | undefined> {
  const read = (given: unknown, flag: string) => {
    if (given === word) return word;
    const value = numberOf(given);
    if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
    throw new UsageError(
      `${flag} must be ${word} or a whole number${range({ ...spec, least, ...(most < Number.MAX_SAFE_INTEGER ? { most } : {}) })}, got ${shown(given)}`,
    );
  };
  return { ...spec, fallback: undefined, read };
}

export function decimalOrAuto({
  least,
  ...spec
}: Spec<undefined> & { readonly least: number }): Option<number | 'auto' | undefined> {
  const read = (given: unknown, flag: string) => {
    const value = given === 'auto' ? given : numberOf(given);
    if (value === 'auto' || (Number.isFinite(value) && value >= least)) return value;
    throw new UsageError(`${flag} must be auto or a number of ${least} or more, got ${shown(given)}`);
  };
  return { ...spec, fallback: undefined, read };
}

export function decimal<F extends number | undefined = undefined>(spec: NumberSpec<F>): Option<number | F> {
  return numeric('a number', Number.isFinite, spec);
}

/** A number, or two separated by a comma: "5" or "2,4". A configuration file may have an array of two. */
export function oneOrTwo(spec: Spec<undefined> & { readonly least?: number }): Option<OneOrTwo | undefined> {
  const read = (given: unknown, flag: string): OneOrTwo => {
    const parts: readonly unknown[] =
      typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : [given];
    const [first, second = first] = parts.map(numberOf);
    if (
      parts.length <= 2 &&
      [first, second].every(
        (value) => Number.isFinite(value) && value >= (spec.least ?? Number.NEGATIVE_INFINITY),
      )
    )
      return parts.length === 1 ? first : [first, second];
    throw new UsageError(
      `${flag} must be a number${range(spec)}, or two with a comma between, got ${shown(given)}`,
    );
  };
  return { ...spec, isList: true, fallback: undefined, read };
}

function numeric<F extends number | undefined>(
  kind: string,
  isKind: (value: number) => boolean,
  spec: NumberSpec<F>,
): Option<number | F> {
  const {
    least = Number.NEGATIVE_INFINITY,
    most = Number.POSITIVE_INFINITY,
    above = Number.NEGATIVE_INFINITY,
    below = Number.POSITIVE_INFINITY,
  } = spec;
  const read = (given: unknown, flag: string) => {
    const value = numberOf(given);
    if (isKind(value) && value >= least && value <= most && value > above && value < below) return value;
    throw new UsageError(`${flag} must be ${kind}${range(spec)}, got ${shown(given)}`);
  };
  return {
    defaultText: spec.fallback === undefined ? undefined : String(spec.fallback),
    ...spec,
    fallback: spec.fallback as F,
    read,
  };
}

/** Values separated by commas, each read as `item`. */
export function listed<T, F extends readonly T[] | undefined>({
  item,
  ...spec
}: Spec<F> & { readonly item: Option<T> }): Option<readonly NonNullable<T>[] | F> {
  const parts = (given: unknown): readonly unknown[] =>
    typeof given === 'string' ? given.split(',').map((part) => part.trim()) : [given];
  return {
    ...spec,
    isList: true,
    fallback: spec.fallback as F,
    read: (given, flag) => parts(given).map((part) => item.read(part, flag) as NonNullable<T>),
  };
}

export { list };

export function textOf(given: unknown, flag: string): string {
  if (typeof given === 'string' && given.trim() !== '') return given;
  throw new UsageError(`${flag} needs a text, got ${shown(given)}`);
}

/** The value of a decimal number; NaN for any other text. */
function numberOf(given: unknown): number {
  if (typeof given === 'number') return given;
  if (typeof given !== 'string' || !/^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(given))
    return Number.NaN;
  return Number(given);
}

function range({ least, most, above, below }: NumberSpec<unknown>): string {
  const count = (value: number) => value.toLocaleString('en-US');
  if (least !== undefined && most !== undefined) return ` from ${count(least)} to ${count(most)}`;
  if (above !== undefined && below !== undefined) return ` above ${count(above)} and below ${count(below)}`;
  if (least !== undefined) return ` of ${count(least)} or more`;
  return above === undefined ? '' : ` above ${count(above)}`;
}

export function shown(given: unknown): string {
  return typeof given === 'string' ? `"${given}"` : JSON.stringify(given);
}

/** Several texts, separated by commas or from repeating the flag. */
export function listOf<F extends readonly string[] | undefined = undefined>(
  spec: Spec<F>,
): Option<readonly string[] | F> {
  return { ...spec, isList: true, fallback: spec.fallback as F, read: readList };
}

/**
 * The parts of a flag's text such as `1, 2,3`, and of each text if the flag is repeated. Quotes protect a
 * comma, as in CSV: `"a,b",c`. Throws UsageError for an empty part.
 */
export function readList(given: unknown, flag: string): string[] {
  const texts = (Array.isArray(given) ? given : [given]).map((each) =>
    typeof each === 'number' ? String(each) : each,
  );
  return texts.flatMap((each) => {
    const whole = textOf(each, flag);
    const parts = [...whole.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(?:,|$)/gy)];
    const read = parts.map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare.trim());
    // The expression can match an empty text, so it matches once more at the end, unless the text ends with a
    // comma.
    if (!/,\s*$/.test(whole)) read.pop();
    const end = parts.reduce((sum, [match]) => sum + match.length, 0);
    if (end < whole.length)
      throw new UsageError(`${flag} has a quote in the wrong place: ${whole}`, {
        advice: 'Put quotes around a whole part: "a,b",c',
      });
    if (read.includes(''))
      throw new UsageError(`${flag} has an empty part: "${whole}"`, {
        advice: 'Give parts such as 1,2,3, and a part with a comma in quotes: "a,b",c',
      });
    return read;
  });
}
