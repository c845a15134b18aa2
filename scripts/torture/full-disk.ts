import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MakeAttack } from './attack.ts';
import { ratings, runCommand, trainSmall } from './commands.ts';

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
