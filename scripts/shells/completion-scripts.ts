import { bashScript } from './bash.ts';
import { completableCommands } from './completable.ts';
import { fishScript } from './fish.ts';
import { zshScript } from './zsh.ts';

/** The scripts that complete all commands, by shell. */
export async function completionScripts() {
  const commands = await completableCommands();
  return { bash: bashScript(commands), zsh: zshScript(commands), fish: fishScript(commands) } as const;
}
