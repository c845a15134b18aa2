/** Attacks on commands that replace an output: it is the old one or the new one, whole. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MakeAttack, Surroundings } from '../attack.ts';
import { endOf, runCommand, type StartOptions, wrongEnd } from '../commands.ts';
import {
  buildShim,
  calls,
  type ChangedCall,
  type Fault,
  faultyEnv,
} from '../../../test/support/faults/shim.ts';
import { type Replacement, replacements } from '../replacements.ts';

/** Calls of the file system at which a process may die, with the highest number that is tried. */
const deadly = { rename: 2, mkdir: 4, rmdir: 2, rm: 2, open: 8, readdir: 6, stat: 6, writeFile: 2 } as const;
const TIMES = 4;

/**
 * Kills commands that replace an output, at a random moment or at a call of the file system; the next run
 * clears up.
 */
export const kills: MakeAttack = (around) => ({
  round: async () => {
    const { count, find } = around;
    const target = await anyTarget(around);
    if (target === undefined) return;
    for (let left = TIMES; left > 0; left--) {
      const { how, kind, options } = death(around, target);
      const ended = await runCommand(target.line, options);
      if (ended.hung) find(`${target.name}: hangs, to be killed ${how}`);
      count(ended.signal === 'SIGKILL' ? `killed at a ${kind}` : 'ended before');
      await target.judge(ended, how, around);
    }
    await target.clearUp(around);
  },
});

interface Death {
  readonly kind: 'moment' | 'call';
  readonly how: string;
  readonly options: StartOptions;
}

function death({ random }: Surroundings, { milliseconds }: Replacement): Death {
  if (random(2) === 0) {
    const moment = random(Math.ceil(1.1 * milliseconds));
    return { kind: 'moment', how: `after ${moment} ms`, options: { signals: [['SIGKILL', moment]] } };
  }
  const names = Object.keys(deadly) as (keyof typeof deadly)[];
  const name = names[random(names.length)];
  const call = `${name}:${1 + random(deadly[name])}:${['before', 'after'][random(2)]}`;
  const nodeArgs = ['--import', join(import.meta.dirname, '../../../test/support/faults/die-at-call.mjs')];
  return { kind: 'call', how: `at ${call}`, options: { nodeArgs, env: { FACTORFLOW_DIE_AT: call } } };
}

/** Sends one or two signals at random moments: the command ends in order, and leaves nothing. */
export const signalled: MakeAttack = (around) => ({
  round: async () => {
    const { random, count, find } = around;
    const target = await anyTarget(around);
    if (target === undefined) return;
    const signal = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const)[random(3)];
    const times = 1 + random(2);
    const signals = Array.from(
      { length: times },
      () => [signal, random(Math.ceil(1.2 * target.milliseconds))] as const,
    );
    const ended = await runCommand(target.line, { signals });
    const how = `by ${signal}, ${times} times`;
    // Node itself ends by a signal that comes before the program listens.
    if (ended.hung || (![0, 130].includes(ended.code ?? -1) && ended.signal !== signal))
      find(`${target.name}: ended ${how}: ${endOf(ended)}`);
    count(ended.code === 130 ? 'cancelled' : ended.code === 0 ? 'ended before' : 'before it listened');
    await target.judge(ended, how, around, false);
    if (target.leftovers.length > 0)
      find(`${target.name}: ended ${how}, leaves ${target.leftovers.join(', ')}`);
  },
});

let made: Promise<readonly Replacement[]> | undefined;

/** One of the commands, which several attacks share. `names`: the commands to choose from. */
async function anyTarget(around: Surroundings, names?: readonly string[]): Promise<Replacement | undefined> {
  made ??= replacements(join(around.folder, '../targets'));
  const targets = (await made).filter(({ name }) => names === undefined || names.includes(name));
  return begin(targets[around.random(targets.length)], around);
}

/** Puts the old output into its place; undefined where the command fails without an attack. */
async function begin(target: Replacement, { find }: Surroundings): Promise<Replacement | undefined> {
  const wrong = await target.learn();
  if (wrong !== undefined) return void find(wrong);
  target.reset();
  return target;
}

/** Starts a command in a space of process numbers of its own, which ends with `unshare`. */
const ownSpace = ['unshare', '--kill-child', '-Urpf', '--mount-proc'];
/** Outputs that `inspect` reads. */
const readable = ['text.csv', 'table.parquet', 'parts', 'trained'];
/** The error of a reader whose file is replaced after it has looked at its columns. */
const replaced = /another process replaced the file while it was read/;

/**
 * A command replaces an output in a space of its own, as a container does, while two others read the output
 * outside or in further spaces: the command ends well or is killed, and every reader finds the old output or
 * the new one, or ends with the error of a file that is replaced while it is read.
 */
export const spaces: MakeAttack = (around) => ({
  prepare: async () =>
    spawnSync(ownSpace[0], [...ownSpace.slice(1), 'true']).status === 0
      ? undefined
      : `the system refuses "${ownSpace.join(' ')}"`,
  round: async () => {
    const { random, count, find } = around;
    const target = await anyTarget(around, readable);
    if (target === undefined) return;
    const moment = random(2) === 0 ? random(Math.ceil(1.5 * target.milliseconds)) : undefined;
    const written = new AbortController();
    const readers = [0, 1].map(async () => {
      const within = random(2) === 0 ? ownSpace : [];
      do {
        const reader = await runCommand(['inspect', target.target, '--quiet'], { within });
        count(within.length === 0 ? 'reads outside' : 'reads in further spaces');
        if (reader.code === 3 && replaced.test(reader.stderr)) count('replaced while read');
        else if (reader.code !== 0) find(`${target.name}: a reader ends with ${endOf(reader)}`);
      } while (!written.signal.aborted);
    });
    const signals = moment === undefined ? [] : [['SIGKILL', moment] as const];
    const writer = await runCommand(target.line, { within: ownSpace, signals });
    written.abort();
    await Promise.all(readers);
    const isKilled = writer.signal === 'SIGKILL' && !writer.hung;
    count(isKilled ? 'killed' : 'written');
    if (!isKilled && writer.code !== 0) find(`${target.name}: the writer ends with ${endOf(writer)}`);
    await target.judge(writer, `in a space of its own${isKilled ? `, after ${moment} ms` : ''}`, around);
    // Files of a killed writer are young, so they stay; no other file may be left.
    const { leftovers } = target;
    if (leftovers.length > 0 && !isKilled)
      find(`${target.name}: written in a space of its own, leaves ${leftovers.join(', ')}`);
    for (const name of leftovers) rmSync(join(target.folder, name), { recursive: true });
  },
});

const errors = ['EIO', 'ENOSPC', 'EINTR', 'EAGAIN', 'EMFILE'];
const unchanged: Fault = { call: 'any', first: 1, times: 0, action: 'none' };

/**
 * Lets calls of the file system fail, do less than was asked for, or take long: a command succeeds with the
 * bits of an undisturbed run, or ends with an error that names the file and leaves the old output. Short
 * reads and writes, and slow calls, never make it fail.
 */
export const faults: MakeAttack = (around) => {
  const { folder, random, count, find } = around;
  const [below, log] = [join(folder, 'targets'), join(folder, 'calls.log')];
  const numbers = new Map<Replacement, Numbers>();
  let shim = '';
  let targets: readonly Replacement[] = [];

  async function run(line: readonly string[], fault: Fault) {
    const { env, read } = faultyEnv(shim, below, fault, log);
    const ended = await runCommand(line, { env });
    return { ended, changed: read() };
  }

  /** The calls of an undisturbed run. */
  async function learn(target: Replacement): Promise<Numbers | undefined> {
    const { ended, changed } = await run(target.line, unchanged);
    if (ended.code === 0 && target.content === 'new') return numbersOf(changed);
    return void find(`${target.name}: the shim alone changes it: ${endOf(ended)}`);
  }

  async function oneFault(target: Replacement, found: Numbers): Promise<void> {
    target.reset();
    const fault = anyFault(around, found);
    const { ended, changed } = await run(target.line, fault);
    const how = `with ${fault.call}:${fault.first}:${fault.times}:${fault.action}`;
    count(changed.length === 0 ? 'not reached' : ended.code === 0 ? 'passed' : 'refused');
    const wrong = wrongEnd(ended, {
      codes: [2, 3, 4],
      names: namesOf(target, changed),
      mustSucceed: changed.length === 0 || !errors.includes(fault.action),
    });
    const paths = changed.slice(0, 3).map(({ call, path }) => `${call} ${path}`);
    if (wrong !== undefined) find(`${target.name} ${how}: ${wrong} (changed: ${paths.join(', ')})`);
    await target.judge(ended, how, around);
  }

  return {
    prepare: async () => {
      const built = buildShim();
      if ('reason' in built) return built.reason;
      shim = built.file;
      targets = await replacements(below, true);
      const seen = ['convert', join(below, 'data.parquet'), join(below, 'seen.csv'), '--quiet'];
      const found = numbersOf((await run(seen, unchanged)).changed);
      const unseen = ['open', 'read', 'write', 'rename', 'close'].filter((call) => !found.has(call));
      return unseen.length === 0 ? undefined : `calls of this Node are not seen: ${unseen.join(', ')}`;
    },
    round: async () => {
      const target = await begin(targets[random(targets.length)], around);
      const found = target && (numbers.get(target) ?? (await learn(target)));
      if (target === undefined || found === undefined) return;
      numbers.set(target, found);
      for (let left = TIMES; left > 0; left--) await oneFault(target, found);
      await target.clearUp(around, below);
    },
    close: async () => rmSync(shim, { force: true }),
  };
};

/** Calls of an undisturbed run, by their kind and "any". */
type Numbers = ReadonlyMap<string, number>;

function numbersOf(changed: readonly ChangedCall[]): Numbers {
  const found = new Map<string, number>([['any', changed.length]]);
  for (const { call } of changed) found.set(call, (found.get(call) ?? 0) + 1);
  return found;
}

/** A change of some calls, of which an undisturbed run has `numbers`. */
function anyFault({ random }: Surroundings, numbers: Numbers): Fault {
  const kinds = [...calls.filter((call) => numbers.has(call)), 'any' as const];
  const call = kinds[random(kinds.length)];
  const first = 1 + random(numbers.get(call) ?? 1);
  const kind = random(7);
  if (kind === 0) return { call: 'any', first: 1, times: 0, action: `short-${random(100)}` };
  if (kind === 1) return { call, first, times: 1, action: `short-${random(100)}` };
  if (kind === 2) return { call, first, times: 1 + random(5), action: `delay-${random(400)}` };
  const action = errors[random(errors.length)];
  // Node repeats a call for EINTR, without end where it has no end.
  const times = action !== 'EINTR' && random(4) === 0 ? 0 : 1;
  return { call, first, times, action };
}

/** Paths that an error has to name: the output for a call near it, else the argument with the input. */
function namesOf(target: Replacement, changed: readonly ChangedCall[]): string[] {
  const near = dirname(target.target);
  return changed.flatMap(({ path }) => {
    if (path.startsWith(near)) return [target.target];
    const given = target.line.filter((word) => word.startsWith('/') && path.startsWith(word));
    return given.length > 0 ? given : [path];
  });
}
