import { type CompletableCommand, type CompletableFlag, spellings } from './completable.ts';

/** A script for zsh, to be evaluated after compinit or put on its function path as _factorflow. */
export function zshScript(commands: readonly CompletableCommand[]): string {
  const cases = commands.map(({ name, flags, words }) => {
    const rest = words.length === 0 ? `'*:file:_files'` : `'1:word:(${words.join(' ')})'`;
    return `    ${name}) _arguments -S ${[...flags.flatMap(flagSpecs), rest].join(' \\\n      ')} ;;`;
  });
  return `#compdef factorflow
# Completion of factorflow for zsh: factorflow completion zsh >> ~/.zshrc, below compinit
_factorflow() {
  local -a commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}`).join('\n')}
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
    quoted(
      flag.takesValue
        ? `${spelling}${spelling.startsWith('--') ? '=' : '+'}${describe}${value}`
        : `${spelling}${describe}`,
    ),
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
