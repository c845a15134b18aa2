import { type CompletableCommand, spellings } from './completable.ts';

/** A script for bash 3.2 and newer. If it returns no words, bash completes file names. */
export function bashScript(commands: readonly CompletableCommand[]): string {
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
