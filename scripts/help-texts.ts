/**
 * The texts of --help, from yargs. They are made at build time: the layout code, and Intl for word widths,
 * take four times as long to load as the parser.
 */
import type { Argv } from 'yargs';
import { commandList, wordsOf } from '../cli/command-list.ts';
import type { Command } from '../cli/commands/command.ts';
import { list } from '../cli/options/kinds.ts';
import { byHeading, type Option, shownFlag } from '../cli/options/option.ts';
import { baseParser, declareFlags } from '../cli/parse-arguments.ts';

/** Terminal widths for which texts are made. */
export const helpWidths = [60, 80, 100, 120] as const;

const NO_DEFAULT = '(none)';

const overviewExamples = [
  ['generate --preset movielens20m --scale 0.01 --output ratings', 'ratings to try it with'],
  [
    'train ratings/train --test ratings/test --model-dir model --rank 16',
    'train, and measure the error on ratings that are held out',
  ],
  ['recommend model --users 1,2,3', 'ten items for each of three users'],
] as const;

const closing = `factorflow <command> --help, or factorflow help <command>, shows the flags of a command.
Exit codes: 0 done, 1 a bug, 2 usage or configuration, 3 data or files, 4 does not fit, 5 diverged or GPU trouble, 130 cancelled.`;

/** The texts by command ('' for the overview) and by width. */
export async function helpTexts(): Promise<Readonly<Record<string, Readonly<Record<number, string>>>>> {
  const forWidths = async (make: (width: number) => Promise<string>) =>
    Object.fromEntries(
      await Promise.all(helpWidths.map(async (width) => [width, await make(width)] as const)),
    );
  const texts: [string, Readonly<Record<number, string>>][] = [['', await forWidths(overview)]];
  for (const { name, summary, load } of commandList) {
    const command = await load();
    const line = `${name} ${wordsOf(command.positionals)}`.trim();
    const describeParts = (parser: Argv) => describeCommand(parser, command);
    texts.push([
      name,
      await forWidths((width) => textOf(helpParser(width).command(line, summary, describeParts), [name])),
    ]);
  }
  return Object.fromEntries(texts);
}

async function overview(width: number): Promise<string> {
  const parser = helpParser(width).usage(
    '$0 <command> [flags]\n\nMatrix factorization of ratings in Parquet, Arrow, CSV and NDJSON files.',
  );
  for (const { name, summary, load } of commandList)
    parser.command(`${name} ${wordsOf((await load()).positionals)}`.trim(), summary);
  return textOf(parser.epilog(`${examplesText(overviewExamples)}\n\n${closing}`), []);
}

async function textOf(parser: Argv, words: readonly string[]): Promise<string> {
  let output = '';
  await parser.parseAsync(
    [...words, '--help'],
    {},
    (_error: unknown, _args: unknown, text: string) => void (output = text),
  );
  return output.replaceAll(` [default: ${NO_DEFAULT}]`, '');
}

function helpParser(width: number): Argv {
  return baseParser().wrap(width).version('0').help().alias('help', 'h');
}

/** Declares the flags and their help. */
function describeCommand(parser: Argv, command: Command): Argv {
  for (const { name, describe, many } of command.positionals) {
    // Without it yargs would make up a default for a list of words.
    parser.positional(name, {
      type: 'string',
      describe,
      ...(many ? { defaultDescription: NO_DEFAULT } : {}),
    });
  }
  declareFlags(parser, command.options);
  // yargs shows groups in the order in which they are first named.
  for (const [key, option] of byHeading(command.options))
    describeOption(parser, { ...option, ...shownFlag(key, option) });
  parser.group(['help', 'version'], 'Options:');
  return parser.epilog(
    [examplesText(command.examples), command.epilog].filter((part) => part !== undefined).join('\n\n'),
  );
}

/** Examples to copy: the explanation, then the whole line below it. */
function examplesText(examples: Command['examples']): string {
  return `Examples:\n${examples.map(([line, meaning]) => `  # ${meaning}\n  factorflow ${line}`).join('\n')}`;
}

function describeOption(parser: Argv, option: Option<unknown> & { readonly flag: string }): void {
  const choices =
    option.choices === undefined || option.choices.length < 2 ? '' : ` (${list(option.choices)})`;
  parser.option(option.flag, {
    describe: option.describe + choices,
    group: option.group ?? 'Data:',
    hidden: option.hidden,
    ...(option.isSwitch ? {} : { defaultDescription: option.defaultText }),
  });
}
