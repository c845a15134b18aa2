import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MakeAttack } from './attack.ts';
import { type Ended, ratings, type Replacement, runCommand, trainSmall } from './commands.ts';
import { recoverInput } from '../../connectors/output/temporaries.ts';
import { anyTarget, judge } from './kills.ts';

/** Writes to file systems of too few bytes or names: the target is named, and nothing is left. */
export const fullDisk: MakeAttack = ({ folder, random, count, find }) => {
  const disk = join(folder, 'disk');
  const model = join(folder, 'model');
  const target = join(disk, 'output');
  const mount = (options: string) =>
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'pipe' });
  const unmount = () => execFileSync('umount', [disk], { stdio: 'pipe' });
  const writers = writersTo(target, model);
  return {
    name: 'full disks',
    prepare: async () => {
      mkdirSync(disk);
      try {
        mount('size=64k');
        unmount();
      } catch (error) {
        return `no tmpfs can be mounted here (${error instanceof Error ? error.message.trim().split('\n').at(-1) : String(error)})`;
      }
      return undefined;
    },
    round: async () => {
      if (!existsSync(model)) await trainSmall(model);
      mount(random(3) === 0 ? `size=8m,nr_inodes=${2 + random(8)}` : `size=${4 << random(11)}k`);
      try {
        const line = writers[random(writers.length)];
        const { code, stderr, hung } = await runCommand([...line, '--quiet']);
        const left = readdirSync(disk);
        const said = `${line.join(' ')} on a full disk`;
        count(code === 0 ? 'fits' : 'refused');
        if (hung || (code !== 0 && code !== 4)) find(`${said}: code ${code}, ${stderr}`);
        if (code !== 0 && (!stderr.includes(target) || stderr.includes('.tmp-')))
          find(`${said} does not name its target: ${stderr}`);
        if (code !== 0 && left.length > 0) find(`${said} leaves ${left.join(', ')}`);
      } finally {
        unmount();
      }
    },
    close: async () => rmSync(disk, { recursive: true, force: true }),
  };
};

/** Command lines that write to `target`. */
function writersTo(target: string, model: string): readonly (readonly string[])[] {
  return [
    ['convert', ratings, `${target}.csv`],
    ['convert', ratings, `${target}.arrow`],
    ['convert', ratings, target],
    ['generate', '--preset', 'movielens20m', '--scale', '0.05', '--output', target],
    ['recommend', model, '--output', target],
    ['export', model, '--output', target],
    ['train', ratings, '--rank', '32', '--max-iter', '1', '--device', 'cpu', '--model-dir', target],
  ];
}

/** Starts a command in a space of process numbers of its own, which ends with `unshare`. */
const ownSpace = ['unshare', '--kill-child', '-Urpf', '--mount-proc'];
/** Outputs that `inspect` reads. */
const readable = ['text.csv', 'table.parquet', 'parts', 'trained'];
const READERS = 2;
/** The error of a reader whose file is replaced after it has looked at its columns. */
const replaced = /another process replaced the file while it was read/;

/**
 * A command replaces an output in a space of its own, as a container does, while others read the output
 * outside or in further spaces: the command ends well or is killed, and every reader finds the old output or
 * the new one, or ends with the error of a file that is replaced while it is read.
 */
export const spaces: MakeAttack = (around) => {
  const { random, count, find } = around;
  return {
    name: 'process spaces',
    prepare: async () =>
      spawnSync(ownSpace[0], [...ownSpace.slice(1), 'true']).status === 0
        ? undefined
        : `the system refuses "${ownSpace.join(' ')}"`,
    round: async () => {
      const target = await anyTarget(around, readable);
      if (target === undefined) return;
      const moment = random(2) === 0 ? random(Math.ceil(1.5 * target.milliseconds)) : undefined;
      const readers = Array.from({ length: READERS }, () => (random(2) === 0 ? ownSpace : []));
      const written = new AbortController();
      const read = readers.map(async (within) => {
        do {
          const reader = await runCommand(['inspect', target.target, '--quiet'], { within });
          count(within.length === 0 ? 'reads outside' : 'reads in further spaces');
          if (reader.code === 3 && replaced.test(reader.stderr)) count('replaced while read');
          else if (reader.code !== 0) find(`${target.name}: a reader ends with ${endOf(reader)}`);
        } while (!written.signal.aborted);
      });
      const writer = await runCommand(target.line, {
        within: ownSpace,
        onStart: (kill) => {
          if (moment !== undefined) setTimeout(() => kill('SIGKILL'), moment);
        },
      });
      written.abort();
      await Promise.all(read);
      const isKilled = writer.signal === 'SIGKILL' && !writer.hung;
      count(isKilled ? 'killed' : 'written');
      if (!isKilled && writer.code !== 0) find(`${target.name}: the writer ends with ${endOf(writer)}`);
      await recoverInput(target.target);
      judge(target, writer, `in a space of its own${isKilled ? `, killed after ${moment} ms` : ''}`, around);
      clearUp(target, isKilled, find);
    },
  };
};

function endOf({ code, signal, stderr, hung }: Ended): string {
  return hung ? 'no end' : `${code ?? signal}: ${stderr.trimEnd()}`;
}

/** Files of a killed writer are young, so they stay; no other file may be left. */
function clearUp(target: Replacement, isKilled: boolean, find: (text: string) => void): void {
  const { leftovers } = target;
  if (leftovers.length > 0 && !isKilled)
    find(`${target.name}: written in a space of its own, leaves ${leftovers.join(', ')}`);
  for (const name of leftovers) rmSync(join(dirname(target.target), name), { recursive: true });
}
