import { basename } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import { list } from '../options/kinds.ts';
import { commonOptions } from '../options/output-options.ts';
import { defineCommand } from './command.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

export const command = defineCommand({
  summary: 'Print a script that completes commands and flags in a shell',
  positionals: [
    {
      name: 'shell',
      describe: `${list(shells)}; by default the shell that the variable SHELL names`,
      required: false,
      choices: shells,
    },
  ],
  options: commonOptions,
  examples: [
    ['completion bash >> ~/.bashrc', 'for bash, in shells that start later'],
    ['completion zsh >> ~/.zshrc', 'for zsh, below compinit'],
    ['completion fish > ~/.config/fish/completions/factorflow.fish', 'for fish'],
  ],
  run: async ({ positionals }) => {
    const [given] = positionals.shell;
    const name = given ?? basename(process.env.SHELL ?? '');
    const shell = shells.find((candidate) => candidate === name);
    if (shell === undefined)
      throw new UsageError(
        `completion is for ${list(shells)}, ${name === '' ? 'and SHELL names none' : `not for "${name}"`}`,
        { advice: 'Name one: factorflow completion bash' },
      );
    const script = (await import('../generated/completions.ts')).completionScripts[shell];
    return { json: { command: 'completion', shell, script }, text: script };
  },
});
