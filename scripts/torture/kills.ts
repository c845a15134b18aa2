import { join } from 'node:path';
import { recoverInput } from '../../connectors/output/temporaries.ts';
import type { MakeAttack, Surroundings } from './attack.ts';
import { type Ended, type Replacement, replacements, runCommand, type StartOptions } from './commands.ts';

/** Calls of the file system at which a process may die, with the highest number that is tried. */
const calls = { rename: 2, mkdir: 4, rmdir: 2, rm: 2, open: 8, readdir: 6, stat: 6, writeFile: 2 } as const;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const KILLS = 4;

/**
 * Kills commands that replace an output, at a random moment or at a call of the file system: the output is
 * the old one or the new one, and the next run clears up.
 */
export const kills: MakeAttack = (around) => {
  const { count, find } = around;
  return {
    name: 'kills',
    round: async () => {
      const target = await anyTarget(around);
      if (target === undefined) return;
      for (let left = KILLS; left > 0; left--) {
        const { how, options } = death(around, target);
        const ended = await runCommand(target.line, options);
        if (ended.hung) find(`${target.name}: hangs, to be killed ${how}`);
        count(
          ended.signal === 'SIGKILL'
            ? how.startsWith('at')
              ? 'killed at a call'
              : 'killed at a moment'
            : 'ended before',
        );
        await recoverInput(target.target);
        judge(target, ended, how, around);
      }
      const ended = await runCommand(target.line);
      if (ended.code !== 0) find(`${target.name}: the next run fails: ${ended.stderr}`);
      if (target.content !== 'new') find(`${target.name}: the next run leaves the output ${target.content}`);
      if (target.leftovers.length > 0)
        find(`${target.name}: the next run leaves ${target.leftovers.join(', ')}`);
    },
  };
};

/** Sends one or two signals at random moments: the command ends in order, and leaves nothing. */
export const signalled: MakeAttack = (around) => {
  const { random, count, find } = around;
  return {
    name: 'signals',
    round: async () => {
      const target = await anyTarget(around);
      if (target === undefined) return;
      const signal = signals[random(signals.length)];
      const times = 1 + random(2);
      const ended = await runCommand(target.line, {
        onStart: (kill) => {
          for (let time = 0; time < times; time++)
            setTimeout(() => kill(signal), random(Math.ceil(1.2 * target.milliseconds)));
        },
      });
      const how = `by ${signal}, ${times} times`;
      if (ended.hung) find(`${target.name}: does not end ${how}`);
      // Node itself ends by a signal that comes before the program listens.
      if (![0, 130].includes(ended.code ?? -1) && ended.signal !== signal)
        find(`${target.name}: ended ${how}: code ${ended.code}, ${ended.stderr}`);
      count(ended.code === 130 ? 'cancelled' : ended.code === 0 ? 'ended before' : 'before it listened');
      judge(target, ended, how, around);
      if (target.leftovers.length > 0)
        find(`${target.name}: ended ${how}, leaves ${target.leftovers.join(', ')}`);
    },
  };
};

let made: Promise<readonly Replacement[]> | undefined;

/**
 * One of the commands, which several attacks share, with the old output in its place; undefined where it
 * fails without an attack. `names`: the commands to choose from.
 */
export async function anyTarget(
  { folder, random, find }: Surroundings,
  names?: readonly string[],
): Promise<Replacement | undefined> {
  made ??= replacements(join(folder, '../targets'));
  const targets = (await made).filter(({ name }) => names === undefined || names.includes(name));
  const target = targets[random(targets.length)];
  const wrong = await target.learn();
  if (wrong !== undefined) find(wrong);
  else target.reset();
  return wrong === undefined ? target : undefined;
}

function death(
  { random }: Surroundings,
  { milliseconds }: Replacement,
): { readonly how: string; readonly options: StartOptions } {
  if (random(2) === 0) {
    const moment = random(Math.ceil(1.1 * milliseconds));
    return {
      how: `after ${moment} ms`,
      options: { onStart: (kill) => void setTimeout(() => kill('SIGKILL'), moment) },
    };
  }
  const names = Object.keys(calls) as (keyof typeof calls)[];
  const name = names[random(names.length)];
  const call = `${name}:${1 + random(calls[name])}:${['before', 'after'][random(2)]}`;
  return {
    how: `at ${call}`,
    options: {
      nodeArgs: ['--import', join(import.meta.dirname, 'die-at-call.mjs')],
      env: { FACTORFLOW_DIE_AT: call },
    },
  };
}

/** The output is the old one or the new one; new where the command says that it is done. */
export function judge(
  target: Replacement,
  { code, signal }: Ended,
  how: string,
  { find, count }: Surroundings,
): void {
  const { content } = target;
  count(`output ${content}`);
  if (content === 'missing' || content === 'other' || (code === 0 && signal === null && content !== 'new'))
    find(`${target.name}: ended ${how} with code ${code}, the output is ${content}`);
}
