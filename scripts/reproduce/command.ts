import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describeMachine } from '../../bench/machine.ts';

const root = resolve(import.meta.dirname, '../..');

/** A command that ended with an error, whose text is on stderr already. */
export class FailedCommand extends Error {
  readonly exitCode: number;

  constructor(name: string, exitCode: number) {
    super(`${name} ended with exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Flags by name; true for a flag without a value. */
export type Flags = Readonly<Record<string, string | number | true>>;

/** Result of a command: what its --json printed, and its seconds from start to end. */
export interface CommandResult<Output> {
  readonly output: Output;
  readonly seconds: number;
}

/** Prints a `factorflow` command, runs it, and returns what it printed. Its progress is on stderr. */
export function runCommand<Output>(inputs: readonly string[], flags: Flags): CommandResult<Output> {
  const args = [...inputs, ...flagWords(flags), '--json'];
  console.log(`$ factorflow ${args.map(quoted).join(' ')}`);
  const start = performance.now();
  const stdout = runNode(`factorflow ${args[0]}`, ['dist/programs/cli/main.js', ...args], 'pipe');
  return { output: JSON.parse(stdout) as Output, seconds: (performance.now() - start) / 1000 };
}

/** Runs a program of the project; `name` is for errors. */
export function runNode(
  name: string,
  [program, ...args]: readonly string[],
  out: 'pipe' | 'inherit',
): string {
  const { status, stdout, error } = spawnSync(process.execPath, [join(root, program), ...args], {
    stdio: ['ignore', out, 'inherit'],
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new FailedCommand(name, status ?? 1);
  return stdout;
}

export function flagWords(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
}

function quoted(word: string): string {
  return /^[\w./,=:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A measured result, as scripts/reproduce/results/NAME.json keeps it. */
export type Recorded<Result> = Result & {
  /** Cores, memory, Node and day of the measurement. */
  readonly machine: string;
  readonly commit: string;
};

export function writeRecord<Result extends object>(name: string, measured: Result): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const recorded: Recorded<Result> = { machine: describeMachine(), commit, ...measured };
  mkdirSync(join(import.meta.dirname, 'results'), { recursive: true });
  writeFileSync(recordFile(name), `${JSON.stringify(recorded, null, 2)}\n`);
}

export function readRecord<Result>(name: string): Recorded<Result> | undefined {
  const file = recordFile(name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Recorded<Result>) : undefined;
}

function recordFile(name: string): string {
  return join(import.meta.dirname, 'results', `${name}.json`);
}
