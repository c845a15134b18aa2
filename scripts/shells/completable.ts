import { commandList } from '../../cli/command-list.ts';
import { type Options, shownFlag } from '../../cli/options/option.ts';

/** A command as shell scripts complete it. */
export interface CompletableCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletableFlag[];
  /** Possible values of the first word after the name; empty if it is a file. */
  readonly words: readonly string[];
}

export interface CompletableFlag {
  readonly name: string;
  /** One letter. */
  readonly alias?: string;
  readonly describe: string;
  readonly takesValue: boolean;
  /** Empty for a value of any kind, such as a file. */
  readonly choices: readonly string[];
}

/** All commands with the flags that --help shows. */
export function completableCommands(): Promise<CompletableCommand[]> {
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
export function spellings({ name, alias }: CompletableFlag): string[] {
  return [name.length === 1 ? `-${name}` : [], `--${name}`, alias === undefined ? [] : `-${alias}`].flat();
}
