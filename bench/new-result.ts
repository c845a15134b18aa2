import { execFileSync } from 'node:child_process';
import type { Result } from '../scripts/docs/results.ts';
import { describeMachine } from './machine.ts';

/**
 * The JSON of a new measurement, for a file of bench/results/, with today's date and the current commit. Edit
 * by hand: replace `machine`, which describes this machine, by a name of machines.json, and write in
 * `meaning` what follows from the figures.
 */
export function newResult(
  measured: Pick<Result, 'id' | 'title' | 'data' | 'commands' | 'columns' | 'rows'>,
): string {
  const { id, title, ...figures } = measured;
  const result: Result = {
    id,
    title,
    date: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    ...figures,
    meaning: '',
  };
  return JSON.stringify(result, null, 2);
}
