import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine } from '../../bench/machine.ts';
import type { Measured } from './measure.ts';
import type { Flags } from './run-command.ts';

/** A measured result, as scripts/reproduce/results/NAME.json keeps it. */
export type Recorded<Result> = Result & {
  /** Cores, memory, Node and day of the measurement. */
  readonly machine: string;
  readonly commit: string;
};

/** A result on a published split. */
export interface MeasuredSet extends Measured {
  readonly settings: Flags;
}

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
