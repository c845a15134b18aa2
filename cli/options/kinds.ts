import { parseSize } from '../../api/sizes.ts';
import { UsageError } from '../../engine/errors.ts';
import {
  isValueOf,
  listed as list,
  meaningOf,
  type NumberParam,
  type OneOrTwo,
  type Param,
  type Params,
} from '../../operators/params/param.ts';
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
    throw new UsageError(`${flag} must be true or false, got ${shown(given)}`);
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

type ValueOf<P extends Param> = P extends { readonly kind: 'number' | 'whole number' }
  ? number | (P extends { readonly or: infer W } ? W : never)
  : P extends { readonly choices: readonly (infer C)[] }
    ? C
    : P extends { readonly kind: 'toggle' }
      ? boolean
      : P extends { readonly kind: 'text' }
        ? string
        : OneOrTwo;

/** A flag whose values, help and default a parameter describes. Without a default it may be undefined. */
export function flagOf<const P extends Param>(
  param: P,
  spec: Omit<Spec<never>, 'fallback'> = {},
): Option<ValueOf<P> | (P extends { readonly fallback: unknown } ? never : undefined)> {
  type Value = ReturnType<typeof flagOf<P>>['fallback'];
  const { help, group, fallback } = param;
  const defaultText = param.defaultText ?? (fallback === undefined ? undefined : String(fallback));
  const own = { group, defaultText, ...spec, describe: help, fallback: fallback as Value };
  const read = (given: unknown, flag: string) => {
    const value = param.kind === 'choice' ? given : parsed(param, given);
    if (isValueOf(param, value)) return value as Value;
    const meaning = meaningOf(param, 'two with a comma between');
    throw new UsageError(`${flag} must be ${meaning}, got ${shown(given)}`);
  };
  switch (param.kind) {
    case 'toggle':
      return { ...own, isSwitch: true, off: param.off, defaultText: spec.defaultText, read };
    case 'choice':
      return { ...own, choices: param.choices, read };
    case 'text':
      return { ...own, read: textOf as typeof read };
    case 'one or two numbers':
      return { ...own, isList: true, read };
    default:
      return { ...own, read };
  }
}

/** The flags of parameters, under one heading. */
export function flagsOf<const P extends Params>(
  params: P,
  spec: Pick<Spec<never>, 'group'> = {},
): { readonly [Name in keyof P]: ReturnType<typeof flagOf<P[Name]>> } {
  return Object.fromEntries(
    Object.entries(params).map(([name, param]) => [name, flagOf(param, spec)]),
  ) as never;
}

/**
 * A flag's text as the parameter's value: a number, or two separated by a comma, from repeating the flag or in an
 * array of a configuration file.
 */
function parsed(param: Param, given: unknown): unknown {
  if (param.kind === 'toggle' || param.kind === 'text') return given;
  if (param.kind !== 'one or two numbers') return numberIn(given);
  const parts: readonly unknown[] = typeof given === 'string' ? given.split(',') : [given].flat();
  return parts.length === 1 ? numberIn(parts[0]) : parts.map((part) => numberIn(part));
}

/** The number in a text; anything else as it is. */
function numberIn(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : text;
}

export function choice<const C extends string, F extends C | undefined = undefined>(
  help: string,
  spec: Spec<F> & { readonly choices: readonly C[] },
): Option<C | F> {
  return flagOf({ kind: 'choice', help, choices: spec.choices, fallback: spec.fallback }, spec) as Option<
    C | F
  >;
}

type NumberSpec<F> = Spec<F> & Omit<NumberParam, keyof Spec<F> | 'kind' | 'help'>;

export function wholeNumber<F extends number | undefined = undefined>(
  help: string,
  spec: NumberSpec<F> = {},
): Option<number | F> {
  return flagOf({ kind: 'whole number', help, ...spec } as NumberParam, spec) as Option<number | F>;
}

export function decimal<F extends number | undefined = undefined>(
  help: string,
  spec: NumberSpec<F> = {},
): Option<number | F> {
  return flagOf({ kind: 'number', help, ...spec } as NumberParam, spec) as Option<number | F>;
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
