import { join, resolve } from 'node:path';
import { type Outcome, type ProcessOptions, startProcess } from '../../test/support/start-process.ts';

export const root = resolve(import.meta.dirname, '../..');
export const program = join(root, 'dist/programs/cli/main.js');
export const ratings = join(root, 'examples/data/movietweetings-100k/ratings.parquet');

/** A command that takes longer hangs. */
const PATIENCE_MILLISECONDS = 120_000;

export interface Ended extends Outcome {
  readonly hung: boolean;
  readonly milliseconds: number;
  /** Milliseconds after the first of `signals`; undefined if the process ended before it. */
  readonly after?: number | undefined;
}

export interface StartOptions extends Pick<ProcessOptions, 'env'> {
  readonly nodeArgs?: readonly string[];
  /** A command that runs the program, such as `unshare`, with its arguments. */
  readonly within?: readonly string[];
  /** The file that is run; default: the built program. */
  readonly main?: string;
  /** What is run in place of Node; then `main` and `nodeArgs` do not count. */
  readonly command?: string;
  /** stdout: not wanted (the default), read, a pipe that is not read, or an open file. */
  readonly stdout?: 'read' | 'unread' | number;
  readonly patience?: number;
  /** Signals that are sent, with the milliseconds from the start. */
  readonly signals?: readonly (readonly [NodeJS.Signals, number])[];
}

/** Starts a command line of the built program, or of another one. */
export function start(args: readonly string[], options: StartOptions = {}) {
  const { env, within = [], nodeArgs = [], main = program, stdout = 'ignore', signals = [] } = options;
  const words = options.command ? [options.command] : [process.execPath, ...nodeArgs, main];
  const began = performance.now();
  const started = startProcess([...within, ...words, ...args], {
    env,
    stdout: stdout === 'read' ? undefined : stdout,
  });
  const { child } = started;
  let [hung, sent] = [false, Number.NaN];
  const timers = signals.map(([signal, moment]) =>
    setTimeout(() => {
      if (Number.isNaN(sent)) sent = performance.now();
      child.kill(signal);
    }, moment),
  );
  const kill = () => {
    hung = true;
    child.kill('SIGKILL');
  };
  timers.push(setTimeout(kill, options.patience ?? PATIENCE_MILLISECONDS));
  const ended = started.outcome.then((outcome): Ended => {
    timers.forEach(clearTimeout);
    const now = performance.now();
    const after = Number.isNaN(sent) ? undefined : now - sent;
    return { ...outcome, hung, milliseconds: now - began, after };
  });
  return { ...started, ended };
}

/** Runs a command line of the built program to its end. */
export function runCommand(args: readonly string[], options?: StartOptions): Promise<Ended> {
  return start(args, options).ended;
}

/** Runs command lines that must succeed. */
export async function make(...lines: readonly (readonly string[])[]): Promise<void> {
  for (const line of lines) {
    const { code, stderr } = await runCommand([...line, '--quiet']);
    if (code !== 0) throw new Error(`factorflow ${line.join(' ')} ends with ${code}: ${stderr}`);
  }
}

/** Trains a small model by one iteration. */
export function trainSmall(model: string, ...flags: readonly string[]): Promise<void> {
  const size = ['--rank', '4', '--max-iter', '1', '--device', 'cpu'];
  return make(['train', ratings, ...size, ...flags, '--model-dir', model, '--force']);
}

/** The end of a command as text. */
export function endOf({ code, signal, stderr, hung }: Ended): string {
  return hung ? 'no end' : `${code ?? signal}: ${stderr.trimEnd()}`;
}

/** The end that is allowed to a command that was attacked. */
interface AllowedEnd {
  /** Exit codes of an error. */
  readonly codes: readonly number[];
  /** The error contains one of these paths or addresses. */
  readonly names: readonly string[];
  /** True where the command must not fail. */
  readonly mustSucceed: boolean;
}

/** The fault in the end of a command; undefined if it succeeded or failed as it should. */
export function wrongEnd(
  { code, signal, stderr, hung }: Ended,
  { codes, names, mustSucceed }: AllowedEnd,
): string | undefined {
  const said = `: ${stderr.trim()}`;
  if (hung) return 'hangs';
  if (signal !== null || code === null) return `is ended by ${signal}${said}`;
  if (code === 0) return undefined;
  if (mustSucceed) return `fails with ${code}${said}`;
  if (!codes.includes(code)) return `ends with ${code}${said}`;
  if (/this is a bug|internal error|^\s+at .*:\d+/im.test(stderr)) return `ends with a stack${said}`;
  if (!names.some((name) => stderr.includes(name))) return `names none of ${names.join(', ')}${said}`;
  // A spilled file is temporary itself.
  return /\.(?<!factorflow-spill\.)(tmp|old)-/.test(stderr) ? `names a temporary${said}` : undefined;
}

/** True if the work takes longer than so many milliseconds. */
export async function isLate(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(true), milliseconds);
  const ended = () => resolve(false);
  work.then(ended, ended);
  const late = await promise;
  clearTimeout(timer);
  return late;
}
