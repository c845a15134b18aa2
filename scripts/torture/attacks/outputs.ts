/** Attacks on what commands write: short writes, full pipes, full disks; and on how soon they end. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import type { MakeAttack } from '../attack.ts';
import { endOf, make, program, ratings, root, runCommand, trainSmall } from '../commands.ts';
import { LyingServer } from '../../../test/support/faults/lying-server.ts';
import { buildShim, type Fault, faultyEnv } from '../../../test/support/faults/shim.ts';

/** Command lines of every kind that writes to stdout. */
function writersToStdout(model: string): readonly (readonly string[])[] {
  return [
    ...['csv', 'tsv', 'ndjson', 'arrow'].map((to) => ['convert', ratings, '-', '--to', to]),
    ['recommend', model, '--output', '-', '--to', 'csv', '--n', '20'],
    ['recommend', model, '--output', '-', '--to', 'ndjson', '--n', '20'],
    ['predict', model, ratings, '--output', '-', '--to', 'csv'],
    ['predict', model, ratings, '--output', '-', '--to', 'arrow'],
  ];
}

/** Command lines that write a text to stdout. */
function printers(model: string): readonly (readonly string[])[] {
  return [
    ['--help'],
    ['train', '--help'],
    ['--version'],
    ['completion', 'bash'],
    ['inspect', ratings],
    ['inspect', model, '--json'],
    ['recommend', model, '--users', '1,2', '--json'],
    ['plan', ratings, '--rank', '4'],
  ];
}

/**
 * stdout into a file, by writes that take some of their bytes, or fail with a full disk after some: the file
 * has the bytes of an undisturbed run, or the command ends with 4 and says so.
 */
export const shortWrites: MakeAttack = ({ folder, random, count, find }) => {
  const [below, log, model] = ['targets', 'calls.log', 'model'].map((name) => join(folder, name));
  let shim = '';

  async function run(line: readonly string[], fault?: Fault) {
    const target = join(below, 'stdout');
    const env = fault && faultyEnv(shim, below, fault, log).env;
    const stdout = openSync(target, 'w');
    try {
      const ended = await runCommand(line, { env, stdout });
      return { ended, written: readFileSync(target) };
    } finally {
      closeSync(stdout);
    }
  }

  return {
    prepare: async () => {
      const built = buildShim();
      if ('reason' in built) return built.reason;
      shim = built.file;
      mkdirSync(below, { recursive: true });
      await trainSmall(model);
      return undefined;
    },
    round: async () => {
      const all = [...writersToStdout(model), ...printers(model)];
      const line = all[random(all.length)];
      const said = line.join(' ');
      const whole = await run(line);
      if (whole.ended.code !== 0) return find(`${said}: ${endOf(whole.ended)}`);
      // The texts of these have times or memory.
      const isTimed = line[0] === 'inspect' || line[0] === 'plan';
      const isWhole = (written: Buffer) => isTimed || written.equals(whole.written);
      const short = await run(line, { call: 'write', first: 1, times: 0, action: `short-${1 + random(99)}` });
      count('short');
      if (short.ended.code !== 0) find(`${said} with short writes ends with ${endOf(short.ended)}`);
      else if (!isWhole(short.written)) find(`${said} with short writes is cut`);
      const full = await run(line, { call: 'write', first: 1 + random(3), times: 0, action: 'ENOSPC' });
      const { code, stderr } = full.ended;
      count(code === 0 ? 'full, not reached' : 'full');
      if (code === 0 ? !isWhole(full.written) : code !== 4 || !/the disk is full \(stdout\)/.test(stderr))
        find(`${said} on a full disk ends with ${endOf(full.ended)}`);
    },
    close: async () => rmSync(shim, { force: true }),
  };
};

/** Time for a command to end after a signal. */
const SIGNAL_MILLISECONDS = 10_000;

/** SIGTERM to commands with an unread pipe as stdout: each ends with 130, within seconds. */
export const fullPipes: MakeAttack = ({ folder, random, count, find }) => {
  const model = join(folder, 'model');
  return {
    prepare: async () => {
      await trainSmall(model);
      return process.platform === 'win32' ? 'Windows has no SIGTERM' : undefined;
    },
    round: async () => {
      const all = writersToStdout(model);
      const line = all[random(all.length)];
      const moment = 200 + random(3000);
      const ended = await runCommand([...line, '--quiet'], {
        stdout: 'unread',
        signals: [['SIGTERM', moment]],
        patience: moment + SIGNAL_MILLISECONDS,
      });
      count('signals');
      // A signal that comes before the command listens ends it by itself.
      if (ended.code !== 130 && ended.signal !== 'SIGTERM')
        find(`${line.join(' ')} into a full pipe, SIGTERM after ${moment} ms: ${endOf(ended)}`);
    },
  };
};

/** Writes to file systems of too few bytes or names: the target is named, and nothing is left. */
export const fullDisk: MakeAttack = ({ folder, random, count, find }) => {
  const [disk, model] = [join(folder, 'disk'), join(folder, 'model')];
  const target = join(disk, 'output');
  const mount = (options: string) =>
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'pipe' });
  const unmount = () => execFileSync('umount', [disk], { stdio: 'pipe' });
  const writers = [
    ['convert', ratings, `${target}.csv`],
    ['convert', ratings, `${target}.arrow`],
    ['convert', ratings, target],
    ['generate', '--preset', 'movielens20m', '--scale', '0.05', '--output', target],
    ['recommend', model, '--output', target],
    ['export', model, '--output', target],
    ['train', ratings, '--rank', '32', '--max-iter', '1', '--device', 'cpu', '--model-dir', target],
  ];
  return {
    prepare: async () => {
      mkdirSync(disk);
      try {
        mount('size=64k');
        unmount();
      } catch (error) {
        return `no tmpfs can be mounted here (${String(error).trim().split('\n').at(-1)})`;
      }
      return undefined;
    },
    round: async () => {
      if (!existsSync(model)) await trainSmall(model);
      mount(random(3) === 0 ? `size=8m,nr_inodes=${2 + random(8)}` : `size=${4 << random(11)}k`);
      try {
        const line = writers[random(writers.length)];
        const ended = await runCommand([...line, '--quiet']);
        const { code, stderr } = ended;
        const left = readdirSync(disk);
        const said = `${line.join(' ')} on a full disk`;
        count(code === 0 ? 'fits' : 'refused');
        if (code === 0) return;
        if (code !== 4) find(`${said} ends with ${endOf(ended)}`);
        if (!stderr.includes(target) || stderr.includes('.tmp-'))
          find(`${said} does not name its target: ${stderr}`);
        if (left.length > 0) find(`${said} leaves ${left.join(', ')}`);
      } finally {
        unmount();
      }
    },
    close: async () => rmSync(disk, { recursive: true, force: true }),
  };
};

const MOST_MILLISECONDS = 500;

/**
 * Sends one signal at a random moment to train, tune and convert on Parquet, CSV and a web server, to `serve` and
 * to the example server. Each ends in half a second and leaves nothing. The times hold on an idle machine: the
 * load is printed with them.
 */
export const quickEnds: MakeAttack = ({ folder, random, count, find }) => {
  const at = (name: string) => join(folder, name);
  const outputs = at('outputs');
  const taken: number[] = [];
  const cases: { name: string; args: readonly string[]; main?: string; span: number }[] = [];
  let server: LyingServer | undefined;

  return {
    prepare: async () => {
      const size = ['--users', '20000', '--items', '4000', '--ratings', '400000'];
      await make(
        ['generate', ...size, '--output', at('data')],
        ['convert', at('data/train'), at('ratings.parquet')],
        ['convert', at('data/train'), at('ratings.csv')],
      );
      mkdirSync(outputs);
      const files = ['ratings.parquet', 'ratings.csv'];
      const contents = files.map((name) => readFileSync(at(name)));
      server = new LyingServer(new Map(files.map((name, i) => [name, [contents[i], contents[i]]])));
      const address = await server.open();
      const output = (name: string) => join(outputs, name);
      const quick = ['--device', 'cpu', '--force', '--quiet'];
      for (const input of [...files.map(at), ...files.map((name) => `${address}/${name}`)]) {
        const small = ['--rank', '16', '--max-iter', '6', '--model-dir', output('model'), ...quick];
        const tuned = ['--trials', '2', '--rank', '8', '--model-dir', output('tuned'), ...quick];
        const lines = [
          ['train', input, ...small],
          ['tune', input, ...tuned],
          ['convert', input, output('rows.parquet'), '--force', '--quiet'],
        ];
        for (const args of lines) cases.push({ name: `${args[0]} ${input}`, args, span: 0 });
      }
      for (const one of cases) {
        const ended = await runCommand(one.args);
        if (ended.code !== 0) throw new Error(`${one.name} ends with ${endOf(ended)}`);
        one.span = ended.milliseconds;
      }
      const example = join(root, 'examples/08-serve-with-fastify.ts');
      const serve = ['serve', output('model'), '--port', '0'];
      cases.push({ name: 'example server', args: [], main: example, span: 4000 });
      cases.push({ name: 'serve', args: serve, span: 2000 });
      return undefined;
    },
    round: async () => {
      const { name, args, main = program, span } = cases[random(cases.length)];
      const moment = random(Math.ceil(span));
      const signal = (['SIGINT', 'SIGTERM'] as const)[random(2)];
      const ended = await runCommand(args, { main, env: { PORT: '0' }, signals: [[signal, moment]] });
      if (ended.after === undefined) return;
      taken.push(ended.after);
      count('signals');
      const left = readdirSync(outputs).filter((file) => file.startsWith('.'));
      if (ended.after <= MOST_MILLISECONDS && left.length === 0 && ended.code !== 1) return;
      const how = `${ended.after.toFixed(0)} ms after ${signal} at ${moment} of ${span.toFixed(0)} ms`;
      find(`${name} ends ${how}: ${endOf(ended)}${left.length > 0 ? `, and leaves ${left.join(', ')}` : ''}`);
    },
    close: async () => {
      server?.close();
      const sorted = taken.toSorted((a, b) => a - b);
      const part = (share: number) =>
        (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(0);
      const times = `median ${part(0.5)} ms, 90 % ${part(0.9)}, 99 % ${part(0.99)}, most ${part(1)}`;
      console.log(`${sorted.length} signals: ${times}; load of the machine ${loadavg()[0].toFixed(1)}`);
    },
  };
};
