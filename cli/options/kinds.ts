import { parseSize } from '../../api/sizes.ts';
import { UsageError } from '../../engine/errors.ts';
import { listed as list, type OneOrTwo } from '../../operators/params/table.ts';
import type { Option } from './option.ts';

type Spec<F> = Partial<Pick<Option<unknown>, 'group' | 'alias' | 'isList' | 'defaultText'>> & {
  readonly fallback?: F;
};

/** A flag of values that `accept` returns; undefined for others, of which an error says what is `meant`. */
export function option<T, F = undefined>(
  describe: string,
  spec: Spec<F>,
  meant: string,
  accept: (given: unknown) => T | undefined,
): Option<T | F> {
  const read = (given: unknown, flag: string) => {
    const value = accept(given);
    if (value !== undefined) return value;
    throw new UsageError(`${flag} must be ${meant}, got ${shown(given)}`);
  };
  const defaultText = spec.fallback === undefined ? undefined : String(spec.fallback);
  return { defaultText, ...spec, describe, fallback: spec.fallback as F, read };
}

/** A flag without a value. */
export function toggle(describe: string, spec: Spec<boolean> = {}): Option<boolean> {
  const read = (given: unknown, flag: string) => {
    if (typeof given === 'boolean') return given;
    throw new UsageError(`${flag} is true or false, got ${shown(given)}`);
  };
  return { ...spec, describe, isSwitch: true, fallback: false, read };
}

export function text<F extends string | undefined = undefined>(
  describe: string,
  spec: Spec<F> = {},
): Option<string | F> {
  return { defaultText: spec.fallback, ...spec, describe, fallback: spec.fallback as F, read: textOf };
}

/** A required text. */
export function requiredText(describe: string, spec: Spec<never> = {}): Option<string> {
  return { ...spec, describe, required: true, fallback: '', read: textOf };
}

/** A size in bytes, such as 4GiB. */
export function size<F extends number | undefined = undefined>(
  describe: string,
  spec: Spec<F>,
): Option<number | F> {
  const read = (given: unknown, flag: string) =>
    parseSize(typeof given === 'number' ? given : textOf(given, flag), flag);
  return { ...spec, describe, fallback: spec.fallback as F, read };
}

export function choice<const C extends string, F extends C | undefined = undefined>(
  describe: string,
  spec: Spec<F> & { readonly choices: readonly C[] },
): Option<C | F> {
  const { choices } = spec;
  const own = option(describe, spec, list(choices), (given) => choices.find((one) => one === given));
  return { ...own, choices };
}

interface NumberBounds {
  readonly least?: number;
  readonly most?: number;
  /** The bound itself is excluded. */
  readonly above?: number;
  readonly below?: number;
}

type NumberSpec<F> = Spec<F> & NumberBounds;

export function wholeNumber<F extends number | undefined = undefined>(
  describe: string,
  spec: NumberSpec<F> = {},
): Option<number | F> {
  return option(describe, spec, `a whole number${range(spec)}`, (given) => wholeOf(given, spec));
}

export function decimal<F extends number | undefined = undefined>(
  describe: string,
  spec: NumberSpec<F> = {},
): Option<number | F> {
  return option(describe, spec, `a number${range(spec)}`, (given) => decimalOf(given, spec));
}

/** A whole number, or a word such as `auto`. */
export function countOr<const W extends string>(
  word: W,
  describe: string,
  spec: NumberSpec<undefined>,
): Option<number | W | undefined> {
  return option(describe, spec, `${word} or a whole number${range(spec)}`, (given) =>
    given === word ? word : wholeOf(given, spec),
  );
}

export function decimalOrAuto(
  describe: string,
  spec: NumberSpec<undefined>,
): Option<number | 'auto' | undefined> {
  return option(describe, spec, `auto or a number${range(spec)}`, (given) =>
    given === 'auto' ? given : decimalOf(given, spec),
  );
}

/** A number, or two separated by a comma: "5" or "2,4". A configuration file may have an array of two. */
export function oneOrTwo(describe: string, spec: NumberSpec<undefined>): Option<OneOrTwo | undefined> {
  const accept = (given: unknown): OneOrTwo | undefined => {
    const parts: readonly unknown[] =
      typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : [given];
    const values = parts.map((part) => decimalOf(part, spec));
    const [first, second] = values;
    if (values.length > 2 || first === undefined || values.includes(undefined)) return undefined;
    return second === undefined ? first : [first, second];
  };
  const meant = `a number${range(spec)}, or two with a comma between`;
  return { ...option<OneOrTwo>(describe, spec, meant, accept), isList: true };
}

/** Values separated by commas, each read as `item`. */
export function listed<T, F extends readonly T[] | undefined>(
  describe: string,
  { item, ...spec }: Spec<F> & { readonly item: Pick<Option<T>, 'read'> },
): Option<readonly NonNullable<T>[] | F> {
  const parts = (given: unknown): readonly unknown[] =>
    typeof given === 'string' ? given.split(',').map((part) => part.trim()) : [given];
  return {
    ...spec,
    describe,
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

function wholeOf(given: unknown, bounds: NumberBounds): number | undefined {
  const value = decimalOf(given, bounds);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The value of a decimal number within bounds; undefined for any other text. */
function decimalOf(
  given: unknown,
  { least = -Infinity, most = Infinity, above = -Infinity, below = Infinity }: NumberBounds,
): number | undefined {
  const isNumber =
    typeof given === 'number' ||
    (typeof given === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(given));
  const value = isNumber ? Number(given) : NaN;
  const isWithin = value >= least && value <= most && value > above && value < below;
  return Number.isFinite(value) && isWithin ? value : undefined;
}

function range({ least, most, above, below }: NumberBounds): string {
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
  describe: string,
  spec: Spec<F> = {},
): Option<readonly string[] | F> {
  return { ...spec, describe, isList: true, fallback: spec.fallback as F, read: readList };
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
