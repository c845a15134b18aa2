import { isatty } from 'node:tty';
import { parseSize } from '../../api/sizes.ts';
import { UsageError } from '../../engine/errors.ts';
import { textOf } from '../options/kinds.ts';
import { machineOptions, memoryBudgetOption, spillDirOption } from '../options/machine-options.ts';
import type { Option } from '../options/option.ts';
import { defineCommand } from './command.ts';

/** A budget that is too small is rejected in a frame, once the parent reads frames. */
const memoryBudget: Option<number | undefined> = {
  ...memoryBudgetOption,
  read: (given, flag) => parseSize(textOf(given, flag), flag),
};

export const command = defineCommand({
  summary: 'Train for a parent process: Arrow in, events and factors out',
  positionals: [],
  options: { ...machineOptions, memoryBudget, spillDir: spillDirOption },
  examples: [
    [
      'worker --device gpu:1 --workers 2 --memory-budget 4GiB',
      'as a parent process starts it, with pipes as stdin and stdout',
    ],
  ],
  epilog: 'docs/reference/worker-protocol.md has the frames. The process ends when its stdin does.',
  run: async ({ values }, { signal }) => {
    if (isatty(0) || isatty(1))
      throw new UsageError('worker is for a parent process, with pipes as stdin and stdout', {
        advice: 'To train by hand, use factorflow train',
      });
    const { serveProcess } = await import('../worker/serve-process.ts');
    await serveProcess(values, signal);
    return { json: {}, text: '' };
  },
});
