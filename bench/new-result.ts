import { execFileSync } from 'node:child_process';
import type { Result } from '../scripts/docs/results.ts';
import { describeMachine } from './machine.ts';

/**
 * The JSON of what was just measured, for a file of bench/results/, with today's date and the commit that is
 * checked out. By hand: `machine`, which describes this one, becomes a name of machines.json, and `meaning`
 * says what follows from the figures.
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
