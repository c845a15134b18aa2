import yargs, { type ArgumentsCamelCase, type Argv } from 'yargs';
import { UsageError } from '../engine/errors.ts';
import { type CommandEntry, commandList, wordsOf } from './command-list.ts';
import type { Command, Positional } from './commands/command.ts';
import { nearestFlag, flagName, type Options, shownFlag } from './options/option.ts';
import type { RawValues } from './options/read-values.ts';
import { commandName, HELP, quickAnswer } from './quick-answer.ts';

export type Request =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'command'; readonly name: string; readonly command: Command; readonly raw: RawValues };

/**
 * Splits the command line into a command and its raw flags, or returns the text of --help or --version.
 * Throws UsageError.
 */
export async function parseArguments(argv: readonly string[]): Promise<Request> {
  const text = await quickAnswer(argv);
  if (text !== undefined) return { kind: 'text', text };
  const name = commandName(argv);
  if (name !== undefined && commandList.some((entry) => entry.name === name)) return parseCommand(name, argv);
  if (name !== undefined) throw unknownCommand(name === HELP ? argv[1] : name);
  const stray = argv.find((word) => word.startsWith('-'));
  if (stray !== undefined)
    throw new UsageError(`unknown flag ${stray}`, { advice: 'A command comes first: see factorflow --help' });
  throw new UsageError('no command is given', {
    advice: `The commands are: ${commandList.map((command) => command.name).join(', ')}; see factorflow --help`,
  });
}

/** Flags of yargs itself, and names that every object has, which yargs takes for settings. */
const isReserved = (flag: string) => ['$0', '_', 'get-yargs-completions'].includes(flag) || flag in {};

/** Finds the command, loads it for its flags, and lets yargs split the line. */
async function parseCommand(name: string, argv: readonly string[]): Promise<Request> {
  const words = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const reserved = words.find((word) => word.startsWith('--') && isReserved(flagOf(word)));
  if (reserved !== undefined) throw unknownFlag(flagOf(reserved), argv, name, {});
  const requests: Request[] = [];
  const parser = baseParser();
  for (const entry of commandList)
    parser.command({
      command: entry.name,
      describe: entry.summary,
      builder: async (inner: Argv) => declareFlags(inner, (await entry.load()).options),
      handler: async (parsed) => void requests.push(requestOf(entry, await entry.load(), argv, parsed)),
    });
  try {
    await parser.parseAsync(argv);
  } catch (error) {
    throw error instanceof Error && error.name === 'YError' ? parserError(error, name) : error;
  }
  return requests[0];
}

function requestOf(
  entry: CommandEntry,
  command: Command,
  argv: readonly string[],
  { $0: _program, _: [, ...words], ...written }: ArgumentsCamelCase,
): Request {
  const flags = withNegations(written, command);
  const known = new Set(Object.keys(command.options).map(flagName));
  const unknown = Object.keys(flags).find((flag) => !known.has(flag));
  if (unknown !== undefined) throw unknownFlag(unknown, argv, entry.name, command.options);
  const positionals = namedWords(words.map(String), argv, entry, command);
  return { kind: 'command', name: entry.name, command, raw: { flags, positionals } };
}

/** Turns --no-biases into biases: false. */
function withNegations(
  flags: Readonly<Record<string, unknown>>,
  { options }: Command,
): Readonly<Record<string, unknown>> {
  const named = { ...flags };
  for (const [key, option] of Object.entries(options)) {
    const [flag, negated] = [flagName(key), `no-${flagName(key)}`];
    if (!hasNegation(option) || named[negated] === undefined) continue;
    if (named[flag] !== undefined)
      throw new UsageError(`--${negated} contradicts --${flag}`, { advice: 'Leave one of them out' });
    named[flag] = !named[negated];
    delete named[negated];
  }
  return named;
}

/** The words that are not flags, by the names of the positionals. */
function namedWords(
  words: readonly string[],
  argv: readonly string[],
  { name }: CommandEntry,
  command: Command,
): Readonly<Record<string, readonly string[]>> {
  const { positionals } = command;
  const givenFor = ({ many }: Positional, at: number) => (many ? words.slice(at) : words.slice(at, at + 1));
  if (positionals.some((positional, at) => positional.required && givenFor(positional, at).length === 0)) {
    throw new UsageError(`${name} needs ${wordsOf(positionals)}`, {
      advice: `See factorflow ${name} --help`,
    });
  }
  const stray = positionals.at(-1)?.many ? undefined : words[positionals.length];
  if (stray !== undefined)
    throw new UsageError(`unknown argument "${stray}" of ${name}`, {
      advice: spacedList(argv, stray, command) ?? `See factorflow ${name} --help`,
    });
  return Object.fromEntries(positionals.map((positional, at) => [positional.name, givenFor(positional, at)]));
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

/** The name in "-n", "--name" or "--name=value". */
function flagOf(word: string): string {
  return word.replace(/^--?/, '').split('=')[0];
}

function unknownFlag(flag: string, argv: readonly string[], name: string, options: Options): UsageError {
  const guess = nearestFlag(
    flag,
    Object.entries(options).map(([key, option]) => shownFlag(key, option).flag),
  );
  const given = argv.find((word) => word.startsWith('-') && flagOf(word) === flag)?.split('=')[0];
  return new UsageError(`unknown flag ${given ?? `-${flag}`} of ${name}`, {
    advice: guess ? `Did you mean --${guess}?` : `See factorflow ${name} --help`,
  });
}

/** Advice if a stray word follows a flag that takes a list: "--users 1 2". */
function spacedList(argv: readonly string[], stray: string, { options }: Command): string | undefined {
  const end = argv.lastIndexOf(stray);
  const start = argv.slice(0, Math.max(0, end)).findLastIndex((word) => word.startsWith('--'));
  if (start < 0) return undefined;
  const [flag, ...joined] = argv[start].split('=');
  const key = Object.keys(options).find((candidate) => `--${flagName(candidate)}` === flag);
  if (key === undefined || !options[key].isList) return undefined;
  return `${flag} takes one text with commas between its parts: ${flag} ${[...joined, ...argv.slice(start + 1, end + 1)].join(',')}`;
}

/** Turns an error of yargs into FactorFlow's words. */
function parserError({ message }: Error, command: string): UsageError {
  const lone = /^Not enough arguments following: (.*)$/.exec(message);
  const flag = lone && `${lone[1].length === 1 ? '-' : '--'}${lone[1]}`;
  return new UsageError(flag ? `${flag} needs a value` : message, {
    advice: `See factorflow ${command} --help`,
  });
}

/** The parser of all command lines, without its commands. It throws errors; it neither prints nor exits. */
export function baseParser(): Argv {
  return yargs([])
    .scriptName('factorflow')
    .locale('en')
    .exitProcess(false)
    .fail(false)
    .version(false)
    .help(false)
    .parserConfiguration({
      // Each flag has one spelling, and its text stays unchanged: `read` of the option checks it.
      'camel-case-expansion': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'dot-notation': false,
      'boolean-negation': false,
      'strip-aliased': true,
    });
}

/** Declares all flags at once: one yargs call per flag takes longer than the rest of the parsing. */
export function declareFlags(parser: Argv, options: Options): Argv {
  const flags = Object.entries(options).map(([key, option]) => ({ flag: flagName(key), ...option }));
  return parser
    .boolean(
      flags
        .filter(({ isSwitch }) => isSwitch)
        .flatMap((option) => (hasNegation(option) ? [option.flag, `no-${option.flag}`] : [option.flag])),
    )
    .nargs(Object.fromEntries(flags.filter(({ isSwitch }) => !isSwitch).map(({ flag }) => [flag, 1])))
    .alias(
      Object.fromEntries(flags.flatMap(({ flag, alias }) => (alias === undefined ? [] : [[flag, alias]]))),
    );
}

/** True if --no-<name> is accepted. */
function hasNegation({ off, isNegatable }: Options[string]): boolean {
  return off !== undefined || isNegatable === true;
}
