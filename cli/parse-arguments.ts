import parseWords from 'yargs-parser';
import { UsageError } from '../engine/errors.ts';
import type { Command, Positional } from './commands/command.ts';
import { type CommandEntry, commandList } from './command-list.ts';
import { nearestFlag } from './options/nearest.ts';
import { flagName, shownFlag } from './options/option.ts';
import type { RawValues } from './options/read-values.ts';
import { commandName, HELP, quickAnswer } from './quick-answer.ts';

export type Request =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'command'; readonly name: string; readonly command: Command; readonly raw: RawValues };

/**
 * Splits the command line into a command and its raw flags, or gives the text of --help or --version. Throws
 * UsageError.
 */
export async function parseArguments(argv: readonly string[]): Promise<Request> {
  const text = await quickAnswer(argv);
  if (text !== undefined) return { kind: 'text', text };
  const name = commandName(argv);
  const entry = commandList.find((candidate) => candidate.name === name);
  if (entry !== undefined) return parseCommand(entry, argv);
  if (name !== undefined) throw unknownCommand(name === HELP ? argv[1] : name);
  const stray = argv.find((word) => word.startsWith('-'));
  if (stray !== undefined)
    throw new UsageError(`unknown flag ${stray}`, { advice: 'A command comes first: see factorflow --help' });
  throw new UsageError('no command is given', {
    advice: `The commands are: ${commandList.map((command) => command.name).join(', ')}; see factorflow --help`,
  });
}

/** Stands for a lone "-" (stdin or stdout), which the parser would lose as a flag's value. */
const LONE_DASH = '\u0000-';

async function parseCommand(entry: CommandEntry, argv: readonly string[]): Promise<Request> {
  const command = await entry.load();
  const options = Object.entries(command.options).map(([key, option]) => ({
    flag: flagName(key),
    ...option,
  }));
  const { argv: parsed, error } = parseWords.detailed(
    argv.map((word) => (word === '-' ? LONE_DASH : word)),
    {
      boolean: options
        .filter(({ isSwitch }) => isSwitch)
        .flatMap(({ flag, off, isNegatable }) =>
          off === undefined && !isNegatable ? [flag] : [flag, `no-${flag}`],
        ),
      narg: Object.fromEntries(options.filter(({ isSwitch }) => !isSwitch).map(({ flag }) => [flag, 1])),
      alias: Object.fromEntries(
        options.flatMap(({ flag, alias }) => (alias === undefined ? [] : [[flag, alias]])),
      ),
      configuration: {
        // One spelling of a flag, and its text untouched: `read` of the option checks it.
        'camel-case-expansion': false,
        'parse-numbers': false,
        'parse-positional-numbers': false,
        'dot-notation': false,
        'boolean-negation': false,
        'strip-aliased': true,
      },
    },
  );
  if (error) throw parserError(error, entry);
  const {
    _: [, ...words],
    ...written
  } = Object.fromEntries(Object.entries(parsed).map(([key, value]) => [key, withDashes(value)])) as {
    readonly _: readonly string[];
    readonly [flag: string]: unknown;
  };
  const flags = withNegations(written, command);
  const unknown = Object.keys(flags).find((flag) => !options.some((option) => option.flag === flag));
  if (unknown !== undefined) throw unknownFlag(unknown, argv, entry, command);
  return {
    kind: 'command',
    name: entry.name,
    command,
    raw: { flags, positionals: namedWords(words, argv, entry, command) },
  };
}

/** --no-biases as biases: false. */
function withNegations(
  flags: Readonly<Record<string, unknown>>,
  { options }: Command,
): Readonly<Record<string, unknown>> {
  const named = { ...flags };
  for (const [key, { off, isNegatable }] of Object.entries(options)) {
    const [flag, negated] = [flagName(key), `no-${flagName(key)}`];
    if ((off === undefined && !isNegatable) || named[negated] === undefined) continue;
    if (named[flag] !== undefined)
      throw new UsageError(`--${negated} contradicts --${flag}`, { advice: 'Leave one of them out' });
    named[flag] = !named[negated];
    delete named[negated];
  }
  return named;
}

function withDashes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDashes);
  return value === LONE_DASH ? '-' : value;
}

/** The words that belong to no flag, by the names of the positionals. */
function namedWords(
  words: readonly string[],
  argv: readonly string[],
  { name, words: notation }: CommandEntry,
  command: Command,
): Readonly<Record<string, readonly string[]>> {
  const { positionals } = command;
  const wordsOf = ({ many }: Positional, at: number) => (many ? words.slice(at) : words.slice(at, at + 1));
  if (positionals.some((positional, at) => positional.required && wordsOf(positional, at).length === 0)) {
    throw new UsageError(`${name} needs ${notation}`, { advice: `See factorflow ${name} --help` });
  }
  const stray = positionals.at(-1)?.many ? undefined : words[positionals.length];
  if (stray !== undefined)
    throw new UsageError(`unknown argument "${stray}" of ${name}`, {
      advice: spacedList(argv, stray, command) ?? `See factorflow ${name} --help`,
    });
  return Object.fromEntries(positionals.map((positional, at) => [positional.name, wordsOf(positional, at)]));
}

function unknownCommand(name: string): UsageError {
  const guess = nearestFlag(
    name,
    commandList.map((command) => command.name),
  );
  return new UsageError(`unknown command "${name}"`, {
    advice: guess ? `Did you mean ${guess}?` : 'See factorflow --help',
  });
}

function unknownFlag(
  flag: string,
  argv: readonly string[],
  { name }: CommandEntry,
  { options }: Command,
): UsageError {
  const guess = nearestFlag(
    flag,
    Object.entries(options).map(([key, option]) => shownFlag(key, option).flag),
  );
  const given = argv
    .find((word) => word.startsWith('-') && word.replace(/^--?/, '').split('=')[0] === flag)
    ?.split('=')[0];
  return new UsageError(`unknown flag ${given ?? `-${flag}`} of ${name}`, {
    advice: guess ? `Did you mean --${guess}?` : `See factorflow ${name} --help`,
  });
}

/** Advice where a stray word stands behind a flag that takes a list: "--users 1 2". */
function spacedList(argv: readonly string[], stray: string, { options }: Command): string | undefined {
  const end = argv.lastIndexOf(stray);
  const start = argv.slice(0, Math.max(0, end)).findLastIndex((word) => word.startsWith('--'));
  if (start < 0) return undefined;
  const [flag, ...joined] = argv[start].split('=');
  const key = Object.keys(options).find((candidate) => `--${flagName(candidate)}` === flag);
  if (key === undefined || !options[key].isList) return undefined;
  return `${flag} takes one text with commas between its parts: ${flag} ${[...joined, ...argv.slice(start + 1, end + 1)].join(',')}`;
}

/** An error of the parser in FactorFlow's words. */
function parserError({ message }: Error, { name }: CommandEntry): UsageError {
  const lone = /^Not enough arguments following: (.*)$/.exec(message);
  const flag = lone && `${lone[1].length === 1 ? '-' : '--'}${lone[1]}`;
  return new UsageError(flag ? `${flag} needs a value` : message, {
    advice: `See factorflow ${name} --help`,
  });
}
