import { UsageError } from '../../../index.ts';
import { type GivenFlags, wholeFlag } from '../given-flags.ts';
import type { PublishedRun } from './published-run.ts';

export interface RunOptions {
  readonly run: PublishedRun;
  /** Folder of the ratings and the model. */
  readonly workFolder: string;
  readonly device: 'auto' | 'cpu' | 'gpu';
  /** Part of the preset's users and ratings, if not the device's default. */
  readonly scale: number | undefined;
  readonly small: boolean;
  readonly seed: number;
  readonly rank: number | undefined;
  /** Keeps the result for the page of published tables. */
  readonly record: boolean;
}

/** Options of an experiment that generates its ratings. */
export function runOptions(run: PublishedRun, flags: GivenFlags): RunOptions {
  return {
    run,
    workFolder: flags.work ?? `build/reproduce/${run.name}`,
    device: deviceOf(flags.device),
    scale: scaleOf(flags.scale),
    small: flags.small ?? false,
    seed: wholeFlag('seed', flags.seed) ?? 1,
    rank: wholeFlag('rank', flags.rank),
    record: flags.record ?? false,
  };
}

function deviceOf(given = 'auto'): RunOptions['device'] {
  if (given !== 'auto' && given !== 'cpu' && given !== 'gpu')
    throw new UsageError(`--device takes auto, cpu or gpu, not "${given}"`);
  return given;
}

function scaleOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const scale = Number(given);
  if (!(scale > 0 && scale <= 1) || given.trim() === '')
    throw new UsageError(`--scale takes a number above 0 and at most 1, not "${given}"`);
  return scale;
}
