import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
export const program = join(root, 'dist/programs/cli/main.js');
/** A command that takes longer hangs. */
const PATIENCE_MILLISECONDS = 120_000;

export const ratings = join(root, 'examples/data/movietweetings-100k/ratings.parquet');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly hung: boolean;
  readonly milliseconds: number;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly nodeArgs?: readonly string[];
  /** A command that runs the program, such as `unshare`, with its arguments. */
  readonly within?: readonly string[];
  /** The file that is run; default: the built program. */
  readonly main?: string;
  /** Called once the process runs; `kill` sends it a signal. */
  readonly onStart?: (kill: (signal: NodeJS.Signals) => void) => void;
}

/** Runs a command line of the built program to its end. */
export function runCommand(
  args: readonly string[],
  { env, nodeArgs = [], within = [], main = program, onStart }: StartOptions = {},
): Promise<Ended> {
  const started = performance.now();
  return new Promise((done) => {
    const [command, ...words] = [...within, process.execPath, ...nodeArgs, main, ...args];
    const child = spawn(command, words, {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, NO_COLOR: '1', ...env },
    });
    let [stderr, hung] = ['', false];
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const timer = setTimeout(() => {
      hung = true;
      child.kill('SIGKILL');
    }, PATIENCE_MILLISECONDS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, stderr, hung, milliseconds: performance.now() - started });
    });
    onStart?.((signal) => void child.kill(signal));
  });
}

/** Trains a model of rank 4 by one iteration. */
export function trainSmall(model: string): Promise<Ended> {
  const size = ['--rank', '4', '--max-iter', '1', '--device', 'cpu'];
  return runCommand(['train', ratings, ...size, '--model-dir', model, '--quiet']);
}

/** A folder that is copied anew before each run. */
interface Restored {
  readonly from: string;
  readonly to: string;
}

/** A command that replaces an output, and the two contents that the output may have. */
export class Replacement {
  readonly name: string;
  readonly target: string;
  readonly #args: readonly string[];
  readonly #first: readonly string[];
  readonly #kept: string;
  readonly #restored: Restored | undefined;
  digests: readonly [old: string, fresh: string] = ['', ''];
  milliseconds = 0;

  /**
   * `args`: the command without its output; `first`: flags that give the old output, each added or in place
   * of the same flag; `restored`: a folder that the command changes.
   */
  constructor(
    folder: string,
    name: string,
    args: readonly string[],
    first: readonly string[],
    restored?: Restored,
  ) {
    this.name = name;
    this.target = join(folder, name, name.includes('.') ? name : 'output');
    this.#kept = join(folder, `${name}-kept`, name.includes('.') ? name : 'output');
    [this.#args, this.#first, this.#restored] = [args, first, restored];
  }

  /** The command line that writes the new output. */
  get line(): readonly string[] {
    return [...this.#args, this.target, '--force', '--quiet'];
  }

  /** Learns both contents, once. Gives what is wrong. */
  async learn(): Promise<string | undefined> {
    if (this.digests[0] !== '') return undefined;
    for (const path of [this.target, this.#kept]) mkdirSync(dirname(path), { recursive: true });
    rmSync(this.#kept, { recursive: true, force: true });
    this.#restore();
    const old = await runCommand([...this.#oldArgs, this.target, '--force', '--quiet', ...this.#first]);
    if (old.code !== 0) return `${this.name}: ${old.stderr}`;
    cpSync(this.target, this.#kept, { recursive: true });
    this.#restore();
    const fresh = await runCommand(this.line);
    if (fresh.code !== 0) return `${this.name}: ${fresh.stderr}`;
    this.milliseconds = fresh.milliseconds;
    const digests = [digestOf(this.#kept), digestOf(this.target)] as const;
    if (digests[0] === digests[1]) return `${this.name}: the old and the new output are the same`;
    this.digests = digests;
    return undefined;
  }

  /** Puts the old output into its place. */
  reset(): void {
    this.#restore();
    rmSync(this.target, { recursive: true, force: true });
    cpSync(this.#kept, this.target, { recursive: true });
  }

  #restore(): void {
    if (this.#restored === undefined) return;
    const { from, to } = this.#restored;
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true });
  }

  /** The arguments without the flags, and their values, that the old output has anew. */
  get #oldArgs(): readonly string[] {
    const isReplaced = (word: string | undefined) => word?.startsWith('--') && this.#first.includes(word);
    return this.#args.filter((word, at) => !isReplaced(word) && !isReplaced(this.#args[at - 1]));
  }

  /** 'old', 'new', 'missing', or 'other' for what must not be. */
  get content(): 'old' | 'new' | 'missing' | 'other' {
    if (!existsSync(this.target)) return 'missing';
    const digest = digestOf(this.target);
    return digest === this.digests[0] ? 'old' : digest === this.digests[1] ? 'new' : 'other';
  }

  /** Names beside the output. */
  get leftovers(): string[] {
    return readdirSync(dirname(this.target)).filter((name) => name.startsWith('.'));
  }
}

/** A digest of all names and bytes below a path. */
export function digestOf(path: string): string {
  const hash = createHash('sha256');
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .sort()
    : [path];
  for (const file of files)
    hash
      .update(`${relative(path, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

/** Commands of every kind that writes. */
export async function replacements(folder: string): Promise<Replacement[]> {
  mkdirSync(folder, { recursive: true });
  const [data, model, few] = [join(folder, 'data.parquet'), join(folder, 'model'), join(folder, 'few.csv')];
  const made = [
    await runCommand(['convert', ratings, few, '--quiet']),
    await trainSmall(model),
    await runCommand(['convert', ratings, data, '--quiet']),
  ];
  const wrong = made.find(({ code }) => code !== 0);
  if (wrong !== undefined) throw new Error(wrong.stderr);
  return [
    new Replacement(folder, 'text.csv', ['convert', data], ['--to', 'tsv']),
    new Replacement(folder, 'rows.ndjson.gz', ['convert', few], ['--to', 'csv']),
    new Replacement(folder, 'table.parquet', ['convert', few], ['--codec', 'gzip']),
    new Replacement(folder, 'parts', ['convert', few], ['--codec', 'snappy']),
    new Replacement(folder, 'lists', ['recommend', model, '--n', '3', '--output'], ['--codec', 'gzip']),
    new Replacement(
      folder,
      'generated',
      ['generate', '--preset', 'movielens20m', '--scale', '0.002', '--output'],
      ['--seed', '7'],
    ),
    new Replacement(folder, 'split', ['split', data, '--test-fraction', '0.1', '--output'], ['--seed', '7']),
    new Replacement(folder, 'factors', ['export', model, '--output'], ['--precision', 'float16']),
    new Replacement(
      folder,
      'trained',
      ['train', data, '--rank', '4', '--max-iter', '2', '--device', 'cpu', '--workers', '2', '--model-dir'],
      ['--seed', '7'],
    ),
  ];
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
