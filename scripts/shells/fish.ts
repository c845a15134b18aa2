import type { CompletableCommand, CompletableFlag } from './completable.ts';

/** A script for fish 3 and newer. */
export function fishScript(commands: readonly CompletableCommand[]): string {
  const lines = commands.flatMap(({ name, summary, flags, words }) => [
    `complete -c factorflow -f -n 'test (count (commandline -opc)) -eq 1' -a ${name} -d ${quoted(summary)}`,
    ...(words.length === 0 ? [] : [`${of(name)} -f -a '${words.join(' ')}'`]),
    ...flags.map((flag) => `${of(name)}${flagOptions(flag)}`),
  ]);
  return `# Completion of factorflow for fish: factorflow completion fish > ~/.config/fish/completions/factorflow.fish
complete -c factorflow -f -n 'test (count (commandline -opc)) -eq 1' -l help -d 'Show help'
complete -c factorflow -f -n 'test (count (commandline -opc)) -eq 1' -l version -d 'Show version number'
${lines.join('\n')}`;
}

/** Applies after the name of a command. */
function of(command: string): string {
  return `complete -c factorflow -n 'test (count (commandline -opc)) -gt 1; and test (commandline -opc)[2] = ${command}'`;
}

function flagOptions({ name, alias, describe, takesValue, choices }: CompletableFlag): string {
  const short = name.length === 1 ? name : alias;
  const value = choices.length > 0 ? ` -x -a '${choices.join(' ')}'` : ' -r -F';
  return `${name.length === 1 ? '' : ` -l ${name}`}${short === undefined ? '' : ` -s ${short}`} -d ${quoted(describe)}${takesValue ? value : ''}`;
}

/** In single quotes fish escapes the quote and the backslash. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}
