import yargs from 'yargs';
import { UsageError } from '../engine/errors.ts';
import type { Command } from './commands/command.ts';
import { type CommandEntry, commandList } from './commands/command-list.ts';
import { nearest } from './options/nearest.ts';
import { flagName } from './options/option.ts';
import type { RawValues } from './options/read-values.ts';
import { packageInfo } from './package-info.ts';
import { describeCommand, examplesText, helpWidth, withoutEmptyDefaults } from './usage.ts';

export type Request =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'command'; readonly name: string; readonly command: Command; readonly raw: RawValues };

/** Splits the command line into a command and its raw flags, or gives the text of --help or --version. Throws UsageError. */
export async function parseArguments(argv: readonly string[]): Promise<Request> {
  const name = commandName(argv);
  const entry = commandList.find((candidate) => candidate.name === name);
  if (entry === undefined && name !== undefined) throw unknownCommand(name);
  if (entry === undefined && !argv.some((word) => ['--help', '-h', '--version'].includes(word))) {
    const stray = argv.find((word) => word.startsWith('-'));
    if (stray !== undefined) throw new UsageError(`unknown flag ${stray}`, { advice: 'A command comes first: see factorflow --help' });
    throw new UsageError('no command is given', { advice: `The commands are: ${commandList.map((command) => command.name).join(', ')}; see factorflow --help` });
  }
  return entry === undefined ? { kind: 'text', text: await overview(argv) } : parseCommand(entry, argv);
}

const examples = [
  ['generate --preset movielens20m --scale 0.01 --output ratings', 'ratings to try it with'],
  ['train ratings/train --test ratings/test --model-dir model --rank 16', 'train, and measure the error on ratings that are held out'],
  ['recommend model --users 1,2,3', 'ten items for each of three users'],
] as const;

const closing = `factorflow <command> --help shows the flags of a command.
Exit codes: 0 done, 1 a bug, 2 usage or configuration, 3 data or files, 4 does not fit, 5 diverged or GPU trouble, 130 cancelled.`;

/** The first word of the line, unless it is a flag. */
export function commandName(argv: readonly string[]): string | undefined {
  return argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
}

/** Stands for a lone "-" (stdin or stdout), which yargs would lose. */
const LONE_DASH = '\u0000-';

async function parseCommand(entry: CommandEntry, argv: readonly string[]): Promise<Request> {
  const command = await entry.load();
  let parsed: Record<string, unknown> | undefined;
  let output = '';
  const parser = baseParser().command({
    command: `${entry.name} ${entry.words}`.trim(),
    describe: entry.summary,
    builder: (commandParser) => describeCommand(commandParser, command),
    handler: (args) => void (parsed = args),
  });
  try {
    await parser.parseAsync(argv.map((word) => (word === '-' ? LONE_DASH : word)), {}, (_error: unknown, _args: unknown, text: string) => void (output = text));
  } catch (error) {
    throw usageError(error, argv, entry, command);
  }
  if (parsed === undefined) return { kind: 'text', text: withoutEmptyDefaults(output) };
  const given = (name: string) => {
    const value = parsed?.[name];
    return Array.isArray(value) ? value.map(withDash) : withDash(value);
  };
  const words = command.positionals.map(({ name }) => [name, [given(name) ?? []].flat().map(String)] as const);
  const flags = Object.fromEntries(Object.keys(command.options).map((key) => [flagName(key), given(flagName(key))]));
  return { kind: 'command', name: entry.name, command, raw: { flags, positionals: Object.fromEntries(words) } };
}

function withDash(value: unknown): unknown {
  return value === LONE_DASH ? '-' : value;
}

/** --help and --version without a command. */
async function overview(argv: readonly string[]): Promise<string> {
  let output = '';
  const parser = baseParser().usage('$0 <command> [flags]\n\nMatrix factorization of ratings in Parquet files.');
  for (const { name, words, summary } of commandList) parser.command(`${name} ${words}`.trim(), summary);
  parser.epilog(`${examplesText(examples)}\n\n${closing}`);
  await parser.parseAsync([...argv], {}, (_error: unknown, _args: unknown, text: string) => void (output = text));
  return output;
}

function baseParser() {
  return yargs([])
    .scriptName('factorflow')
    .locale('en')
    .exitProcess(false)
    .fail(false)
    .strict()
    .wrap(helpWidth())
    .version(packageInfo().version)
    .help()
    .alias('help', 'h')
    .parserConfiguration({
      // One spelling of a flag, and its text untouched: `read` of the option checks it.
      'camel-case-expansion': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'dot-notation': false,
      'boolean-negation': false,
      'strip-aliased': true,
    });
}

function unknownCommand(name: string): UsageError {
  const guess = nearest(name, commandList.map((command) => command.name));
  return new UsageError(`unknown command "${name}"`, { advice: guess ? `Did you mean ${guess}?` : 'See factorflow --help' });
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

/** An error of yargs in FactorFlow's words. */
function usageError(error: unknown, argv: readonly string[], { name, words }: CommandEntry, command: Command): Error {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /^Unknown arguments?: (.*)$/.exec(message);
  if (unknown) {
    const flags = Object.keys(command.options).map(flagName);
    const [first] = unknown[1].split(', ');
    const spaced = spacedList(argv, first, command);
    if (spaced !== undefined) return new UsageError(`unknown argument "${first}" of ${name}`, { advice: spaced });
    const guess = nearest(first, flags);
    const dashed = argv.find((word) => word.replace(/^--?/, '').split('=')[0] === first);
    const what = dashed?.startsWith('-') ? `unknown flag ${dashed.split('=')[0]}` : `unknown argument "${first}"`;
    return new UsageError(`${what} of ${name}`, { advice: guess ? `Did you mean --${guess}?` : `See factorflow ${name} --help` });
  }
  const lone = /^Not enough arguments following: (.*)$/.exec(message);
  if (lone) return new UsageError(`--${lone[1]} needs a value`, { advice: `See factorflow ${name} --help` });
  if (message.startsWith('Not enough non-option arguments')) return new UsageError(`${name} needs ${words}`, { advice: `See factorflow ${name} --help` });
  return error instanceof Error && error.name !== 'YError' && error.name !== 'Error' ? error : new UsageError(message, { advice: `See factorflow ${name} --help` });
}
