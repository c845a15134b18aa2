import { spawn, type StdioOptions } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { MakeAttack } from './attack.ts';
import { type Ended, program, ratings, trainSmall } from './commands.ts';
import { buildShim, type Fault, faultyEnv } from './faults/shim.ts';
import { UsageError } from '../../index.ts';
import { callsOf, CLOSED, opened } from '../../test/support/mixed-work.ts';

/** Time for a command to end after a signal. */
const SIGNAL_MILLISECONDS = 10_000;
/** A command that takes longer hangs. */
const PATIENCE_MILLISECONDS = 120_000;

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
  const target = join(below, 'stdout');
  let shim = '';

  async function run(line: readonly string[], fault?: Fault): Promise<Ended> {
    const env = fault && faultyEnv(shim, below, fault, log).env;
    const stdout = openSync(target, 'w');
    try {
      return await ended(start(line, ['ignore', stdout, 'pipe'], env));
    } finally {
      closeSync(stdout);
    }
  }

  return {
    name: 'short writes',
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
      if (whole.code !== 0) return find(`${said}: ${whole.stderr}`);
      const expected = readFileSync(target);
      const short = await run(line, { call: 'write', first: 1, times: 0, action: `short-${1 + random(99)}` });
      count('short');
      if (short.code !== 0) find(`${said} with short writes ends with ${short.code}: ${short.stderr}`);
      else if (!isTimed(line) && !readFileSync(target).equals(expected))
        find(`${said} with short writes is cut`);
      const full = await run(line, { call: 'write', first: 1 + random(3), times: 0, action: 'ENOSPC' });
      count(full.code === 0 ? 'full, not reached' : 'full');
      const isWhole = full.code === 0 && (isTimed(line) || readFileSync(target).equals(expected));
      if (!isWhole && !(full.code === 4 && /the disk is full \(stdout\)/.test(full.stderr)))
        find(`${said} on a full disk ends with ${full.code}: ${full.stderr}`);
    },
    close: async () => rmSync(shim, { force: true }),
  };
};

/** True for a command whose text has times or memory. */
function isTimed([command]: readonly string[]): boolean {
  return command === 'inspect' || command === 'plan';
}

/** SIGTERM to commands with an unread pipe as stdout: each ends with 130, within seconds. */
export const fullPipes: MakeAttack = ({ folder, random, count, find }) => {
  const model = join(folder, 'model');
  return {
    name: 'full pipes',
    prepare: async () => {
      await trainSmall(model);
      return process.platform === 'win32' ? 'Windows has no SIGTERM' : undefined;
    },
    round: async () => {
      const all = writersToStdout(model);
      const line = all[random(all.length)];
      const child = start([...line, '--quiet'], ['ignore', 'pipe', 'pipe']);
      const outcome = ended(child);
      await pause(200 + random(3000));
      const started = performance.now();
      child.kill('SIGTERM');
      const { code, signal, stderr } = await Promise.race([
        outcome,
        pause(SIGNAL_MILLISECONDS, { code: null, signal: 'none', stderr: '' } as const),
      ]);
      child.kill('SIGKILL');
      count('signals');
      // A signal that comes before the command listens ends it by itself.
      if (code !== 130 && signal !== 'SIGTERM')
        find(
          `${line.join(' ')} into a full pipe, ${(performance.now() - started).toFixed(0)} ms after SIGTERM: code ${code}, signal ${signal}, ${stderr}`,
        );
    },
  };
};

function start(line: readonly string[], stdio: StdioOptions, env: NodeJS.ProcessEnv = {}) {
  return spawn(process.execPath, [program, ...line], {
    stdio,
    env: { ...process.env, NO_COLOR: '1', ...env },
  });
}

/** The end of a command, whether or not its stdout was read. */
function ended(child: ReturnType<typeof start>): Promise<Ended> {
  const started = performance.now();
  return new Promise((done) => {
    let [stderr, hung] = ['', false];
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, PATIENCE_MILLISECONDS);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, stderr, hung, milliseconds: performance.now() - started });
    });
  });
}

const SESSIONS = 4;
const CALLS = 10;
const MOST_DELAY_MILLISECONDS = 60;
const MOST_MILLISECONDS = 400;
/** A call, or `close`, that takes longer after the session was asked to close hangs. */
const CLOSING_MILLISECONDS = 60_000;

/**
 * Closes sessions at random moments among calls of every kind: each call succeeds or throws the error that
 * the docs name, has ended when `close` has, and leaves no output that is not whole.
 */
export const closing: MakeAttack = ({ folder, random, count, find }) => {
  const [saved, output] = [join(folder, 'saved'), join(folder, 'output')];

  async function closeAmongWork(): Promise<void> {
    mkdirSync(output);
    const all = await opened();
    const calls = Object.entries(callsOf(all, saved, output));
    const chosen = Array.from({ length: CALLS }, () => calls.splice(random(calls.length), 1)[0]);
    const running = new Set(chosen.map(([name]) => name));
    const delays = chosen.map(() => random(MOST_DELAY_MILLISECONDS));
    const ended = chosen.map(async ([name, call], index) => {
      await pause(delays[index]);
      const outcome = await call().then(() => 'ended before', outcomeOf);
      running.delete(name);
      count(outcome === 'closed' || outcome === 'ended before' ? outcome : 'found');
      if (outcome !== 'closed' && outcome !== 'ended before') find(`${name} in a closed session: ${outcome}`);
    });
    await pause(random(MOST_MILLISECONDS));
    if (await hangs(all.session.close())) return find(`close hangs among ${[...running].join(', ')}`);
    const written = namesIn(output);
    if (await hangs(Promise.all(ended)))
      return find(`in a closed session these hang: ${[...running].join(', ')}`);
    if (namesIn(output) !== written) find(`after close the output is ${namesIn(output)}, before ${written}`);
    const left = readdirSync(output).filter((name) => name.startsWith('.'));
    if (left.length > 0) find(`a closed session leaves ${left.join(', ')}`);
    rmSync(output, { recursive: true });
  }

  return {
    name: 'closing',
    prepare: async () => {
      const { session, model } = await opened();
      await model.save(saved);
      await session.close();
      return undefined;
    },
    round: async () => {
      for (let left = SESSIONS; left > 0; left--) await closeAmongWork();
    },
  };
};

function outcomeOf(error: unknown): string {
  if (error instanceof UsageError && error.message === CLOSED) return 'closed';
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function hangs(work: Promise<unknown>): Promise<boolean> {
  const stop = new AbortController();
  const late = pause(CLOSING_MILLISECONDS, true, { signal: stop.signal }).catch(() => false);
  const isLate = await Promise.race([work.then(() => false), late]);
  stop.abort();
  return isLate;
}

function namesIn(folder: string): string {
  return readdirSync(folder, { recursive: true }).sort().join(', ');
}
