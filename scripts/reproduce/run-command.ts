import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const program = join(resolve(import.meta.dirname, '../..'), 'dist/programs/cli/main.js');

/** A command that ended with an error, whose text is on stderr already. */
export class FailedCommand extends Error {
  readonly exitCode: number;

  constructor(args: readonly string[], exitCode: number) {
    super(`factorflow ${args[0]} ended with exit code ${exitCode}`);
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
  const { status, stdout, error } = spawnSync(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new FailedCommand(args, status ?? 1);
  return { output: JSON.parse(stdout) as Output, seconds: (performance.now() - start) / 1000 };
}

export function flagWords(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  );
}

function quoted(word: string): string {
  return /^[\w./,=:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
