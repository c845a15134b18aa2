import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine } from '../../bench/machine.ts';
import type { Measured } from './measure.ts';
import type { Flags } from './run-command.ts';

/** A measured result, as scripts/reproduce/results/NAME.json keeps it. */
export interface Recorded extends Measured {
  /** Cores, memory, Node and day of the measurement. */
  readonly machine: string;
  readonly commit: string;
  readonly settings: Flags;
}

export function writeRecord(set: string, measured: Measured, settings: Flags): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const recorded: Recorded = { machine: describeMachine(), commit, settings, ...measured };
  mkdirSync(join(import.meta.dirname, 'results'), { recursive: true });
  writeFileSync(recordFile(set), `${JSON.stringify(recorded, null, 2)}\n`);
}

export function readRecord(set: string): Recorded | undefined {
  const file = recordFile(set);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Recorded) : undefined;
}

function recordFile(set: string): string {
  return join(import.meta.dirname, 'results', `${set}.json`);
}
