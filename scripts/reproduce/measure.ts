import { join } from 'node:path';
import type { SplitFiles } from './read-split.ts';
import { type Flags, runCommand } from './run-command.ts';
import type { PublishedSet } from './sets.ts';

export interface Measured {
  readonly metrics: Readonly<Record<string, number>>;
  /** Users over whom means are taken. */
  readonly users: number;
  /** Seconds of both commands, from their start to their end. */
  readonly trainSeconds: number;
  readonly evaluateSeconds: number;
}

export interface MeasureOptions {
  readonly workFolder: string;
  readonly settings: Flags;
  readonly seed: number;
  readonly keepSeen: boolean;
  /** Users that are ranked. */
  readonly users: number | 'all';
}

/** Trains on the whole of train, and measures test once. Unknown users and items count as misses. */
export function measure(set: PublishedSet, files: SplitFiles, options: MeasureOptions): Measured {
  const { workFolder, settings, seed, keepSeen, users } = options;
  const model = join(workFolder, 'model');
  const trained = runCommand(['train', files.train], {
    'model-dir': model,
    implicit: true,
    ...settings,
    seed,
    force: true,
    quiet: true,
  });
  const { candidates } = files;
  const { output, seconds } = runCommand<Pick<Measured, 'metrics' | 'users'>>(
    ['evaluate', model, files.test],
    {
      ranking: true,
      ...(candidates !== undefined && { candidates }),
      ...(!(candidates !== undefined && keepSeen) && { exclude: files.train }),
      metrics: set.metrics.join(','),
      k: set.k.join(','),
      'cold-pairs': 'miss',
      'rank-users': users,
      resamples: 0,
      quiet: true,
    },
  );
  return {
    metrics: output.metrics,
    users: output.users,
    trainSeconds: trained.seconds,
    evaluateSeconds: seconds,
  };
}
