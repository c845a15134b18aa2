import type { Argv } from 'yargs';
import type { Command } from './commands/command.ts';
import { list } from './options/kinds.ts';
import { flagName, groups, type Option } from './options/option.ts';

const NO_DEFAULT = '(none)';

/** Declares the flags and their help to yargs. Values stay text, since each option reads its own. */
export function describeCommand(parser: Argv, command: Command): Argv {
  for (const { name, describe, many } of command.positionals) {
    parser.positional(name, { type: 'string', describe, ...(many ? { defaultDescription: NO_DEFAULT } : {}) });
  }
  const options = Object.entries(command.options);
  // yargs shows groups in the order in which they are first named.
  for (const group of groups) {
    for (const [key, option] of options) if (option.group === group) describeOption(parser, flagName(key), option);
  }
  parser.group(['help', 'version'], 'Options:');
  return parser.epilog([examplesText(command.examples), command.epilog].filter((part) => part !== undefined).join('\n\n'));
}

/** Examples for copying: the meaning, and below it the whole line. */
export function examplesText(examples: Command['examples']): string {
  return `Examples:\n${examples.map(([line, meaning]) => `  # ${meaning}\n  factorflow ${line}`).join('\n')}`;
}

/** Removes the default that yargs makes up for a list of words. */
export function withoutEmptyDefaults(help: string): string {
  return help.replaceAll(` [default: ${NO_DEFAULT}]`, '');
}

function describeOption(parser: Argv, flag: string, option: Option<unknown>): void {
  const choices = option.choices === undefined || option.choices.length < 2 ? '' : ` (${list(option.choices)})`;
  parser.option(flag, {
    describe: option.describe + choices,
    group: option.group,
    hidden: option.hidden,
    ...(option.alias === undefined ? {} : { alias: option.alias }),
    ...(option.isSwitch ? { type: 'boolean' as const } : { requiresArg: true, defaultDescription: option.defaultText }),
  });
}

export function helpWidth(): number {
  return Math.max(60, Math.min(120, process.stdout.columns ?? 100));
}
