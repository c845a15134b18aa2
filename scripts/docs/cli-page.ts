/** docs/reference/cli.md: every command with its words and flags, from the command line's own definitions. */
import { type CommandEntry, commandList, wordsOf } from '../../cli/command-list.ts';
import type { Command } from '../../cli/commands/command.ts';
import { byHeading, flagName, type Option, shownFlag } from '../../cli/options/option.ts';
import { markdownTable } from './markdown.ts';

const introduction = `# Command line

\`factorflow <command> [flags]\`. Flags are written \`--flag value\` or \`--flag=value\`; unknown flags are errors. Every command has \`--help\`.

Results go to stdout, everything else to stderr. With \`--json\` stdout holds exactly one JSON object, on one line. Exit codes:
0 done, 1 a bug, 2 usage or configuration, 3 data or files, 4 does not fit, 5 diverged or GPU trouble, 130 cancelled.
`;

export async function cliPage(): Promise<string> {
  const commands = await Promise.all(
    commandList.map(async (entry) => ({ entry, command: await entry.load() })),
  );
  const contents = commandList.map(({ name, summary }) => `| [${name}](#${name}) | ${summary} |`);
  return [
    introduction,
    `| command | |\n|---|---|\n${contents.join('\n')}\n`,
    ...commands.map(({ entry, command }) => commandSection(entry, command)),
  ].join('\n');
}

function commandSection({ name }: CommandEntry, command: Command): string {
  const { summary, positionals, epilog } = command;
  const options = Object.entries(command.options).filter(([, option]) => !option.hidden);
  const required = options.filter(([, option]) => option.required).map(([key]) => `--${flagName(key)} …`);
  const line = ['factorflow', name, wordsOf(positionals), ...required, '[flags]'].filter(
    (word) => word !== '',
  );
  const words = positionals.map((word) => {
    return [`\`${word.name}\``, `${word.describe}${word.required ? '' : ' (optional)'}`];
  });
  const flags = byHeading(Object.fromEntries(options)).map(([key, option]) => flagRow(key, option));
  const examples = command.examples.map(
    ([example, meaning]) => `    # ${meaning}\n    factorflow ${example}\n`,
  );
  return [
    `## ${name}\n`,
    `${summary}.\n`,
    `\`${line.join(' ')}\`\n`,
    ...(words.length === 0 ? [] : [markdownTable([['word', 'meaning'], ...words])]),
    markdownTable([['flag', 'default', 'meaning'], ...flags]),
    examples.join('\n'),
    ...(epilog === undefined ? [] : [`${epilog}\n`]),
  ].join('\n');
}

function flagRow(key: string, option: Option<unknown>): string[] {
  const { flag, describe } = shownFlag(key, option);
  const short = flagName(key).length === 1 ? key : option.alias;
  const alias = short === undefined ? '' : `, \`-${short}\``;
  const untold =
    option.choices?.some((choice) => !option.describe.includes(choice)) && (option.choices?.length ?? 0) > 1;
  const choices = !untold ? '' : `: ${option.choices?.map((choice) => `\`${choice}\``).join(', ')}`;
  return [
    `\`--${flag}\`${alias}`,
    option.required ? 'needed' : (option.defaultText ?? ''),
    `${describe}${choices}`,
  ];
}
