import { commandList } from '../cli/command-list.ts';
import { type Options, shownFlag } from '../cli/options/option.ts';

/** A command as shell scripts complete it. */
interface CompletableCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletableFlag[];
  /** Possible values of the first word after the name; empty if it is a file. */
  readonly words: readonly string[];
}

interface CompletableFlag {
  readonly name: string;
  /** One letter. */
  readonly alias?: string;
  readonly describe: string;
  readonly takesValue: boolean;
  /** Empty for a value of any kind, such as a file. */
  readonly choices: readonly string[];
}

/** All commands with the flags that --help shows. */
function completableCommands(): Promise<CompletableCommand[]> {
  return Promise.all(
    commandList.map(async ({ name, summary, load }) => {
      const { options, positionals } = await load();
      return { name, summary, flags: [...flagsOf(options), help], words: positionals[0]?.choices ?? [] };
    }),
  );
}

const help: CompletableFlag = {
  name: 'help',
  alias: 'h',
  describe: 'Show help',
  takesValue: false,
  choices: [],
};

function flagsOf(options: Options): CompletableFlag[] {
  return Object.entries(options)
    .filter(([, { hidden }]) => !hidden)
    .map(([key, { alias, isSwitch, choices = [], ...line }]) => {
      const { flag, describe } = shownFlag(key, line);
      return { name: flag, alias, describe, takesValue: !isSwitch, choices };
    });
}

/** "-n" for a one-letter name, which can also be written with two dashes. */
function spellings({ name, alias }: CompletableFlag): string[] {
  return [name.length === 1 ? `-${name}` : [], `--${name}`, alias === undefined ? [] : `-${alias}`].flat();
}

/** A script for bash 3.2 and newer. If it returns no words, bash completes file names. */
function bashScript(commands: readonly CompletableCommand[]): string {
  const flagsOf = commands.map(
    ({ name, flags, words }) =>
      `    ${name}) flags='${flags.flatMap(spellings).join(' ')}' words='${words.join(' ')}' ;;`,
  );
  const valuesOf = commands.flatMap(({ name, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map(
        (flag) =>
          `    ${spellings(flag)
            .map((spelling) => `'${name} ${spelling}'`)
            .join(' | ')}) flags='' words='${flag.choices.join(' ')}' ;;`,
      ),
  );
  return `# Completion of factorflow for bash: factorflow completion bash >> ~/.bashrc
_factorflow() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" flags='' words=''
  # bash takes --flag=value apart.
  if [ "$word" = = ]; then word=''
  elif [ "$before" = = ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${commands.map(({ name }) => name).join(' ')} --help --version' -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${flagsOf.join('\n')}
  esac
  case "\${COMP_WORDS[1]} $before" in
${valuesOf.join('\n')}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
  esac
}
complete -o bashdefault -o default -F _factorflow factorflow`;
}

/** A script for zsh, to be evaluated after compinit or put on its function path as _factorflow. */
function zshScript(commands: readonly CompletableCommand[]): string {
  const cases = commands.map(({ name, flags, words }) => {
    const rest = words.length === 0 ? `'*:file:_files'` : `'1:word:(${words.join(' ')})'`;
    return `    ${name}) _arguments -S ${[...flags.flatMap(flagSpecs), rest].join(' \\\n      ')} ;;`;
  });
  return `#compdef factorflow
# Completion of factorflow for zsh: factorflow completion zsh >> ~/.zshrc, below compinit
_factorflow() {
  local -a commands=(
${commands.map(({ name, summary }) => `    ${quotedForZsh(`${name}:${summary.replaceAll(':', '\\:')}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[Show help]' '--version[Show version number]'
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _factorflow ]]; then _factorflow "$@"; else compdef _factorflow factorflow; fi`;
}

/** One specification for each spelling, as _arguments reads them. */
function flagSpecs(flag: CompletableFlag): string[] {
  const describe = `[${flag.describe.replaceAll(/[[\]\\:]/g, '\\$&')}]`;
  const value =
    flag.choices.length > 0 ? `:${flag.name}:(${flag.choices.join(' ')})` : `:${flag.name}:_files`;
  return spellings(flag).map((spelling) =>
    quotedForZsh(
      flag.takesValue
        ? `${spelling}${spelling.startsWith('--') ? '=' : '+'}${describe}${value}`
        : `${spelling}${describe}`,
    ),
  );
}

function quotedForZsh(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A script for fish 3 and newer. */
function fishScript(commands: readonly CompletableCommand[]): string {
  const lines = commands.flatMap(({ name, summary, flags, words }) => [
    `complete -c factorflow -f -n 'test (count (commandline -opc)) -eq 1' -a ${name} -d ${quotedForFish(summary)}`,
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
  return `${name.length === 1 ? '' : ` -l ${name}`}${short === undefined ? '' : ` -s ${short}`} -d ${quotedForFish(describe)}${takesValue ? value : ''}`;
}

/** In single quotes fish escapes the quote and the backslash. */
function quotedForFish(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}

/** The scripts that complete all commands, by shell. */
export async function completionScripts() {
  const commands = await completableCommands();
  return { bash: bashScript(commands), zsh: zshScript(commands), fish: fishScript(commands) } as const;
}
