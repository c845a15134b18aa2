import { formatBytes } from '../../engine/format.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { Stage, TaskPlan } from '../../engine/plan/stages.ts';
import { type RatingsProfile, loadingBytes, spilledLoadingBytes } from './sizes.ts';

/** A stage of one task. */
export function taskStage(
  name: string,
  at: readonly Place[],
  task: TaskPlan,
  more: Partial<Stage> = {},
): Stage {
  return { name, at, work: { kind: 'tasks', tasks: [task] }, kernel: task.kernel, ...more };
}

/** Names of the stages of a fit's graph (engine/run/scope.ts) from reading ratings to training. */
export const loadingStages = { read: 'read ratings', sort: 'sort ratings', train: 'train' } as const;

/**
 * The plan's stages for reading ratings, numbering their ids and sorting them. `sort`: the fields of the last
 * stage that differ between algorithms.
 */
export function loadStages(
  { ratings: nz, input }: RatingsProfile,
  place: Place,
  sort: Pick<Stage, 'kernel' | 'bytesWritten' | 'reasons'>,
): Stage[] {
  const memory =
    `loading takes up to ${formatBytes(loadingBytes(nz))} of memory; with a smaller memory budget ` +
    `ratings are written to files first, and loading takes ${formatBytes(spilledLoadingBytes(nz))}`;
  const reads = { kind: 'grown', by: loadingStages.read } as const;
  return [
    { name: 'read', at: [HOST], work: reads, kernel: input ?? 'source', bytesWritten: 12 * nz },
    {
      name: 'index-ids',
      at: [place],
      work: reads,
      kernel: 'number-keys',
      tasks: Math.ceil(nz / 2 ** 20),
      bytesRead: 12 * nz,
      bytesWritten: 12 * nz,
    },
    {
      name: 'rating-blocks',
      at: [place],
      work: { kind: 'grown', by: loadingStages.sort },
      bytesRead: 12 * nz,
      ...sort,
      reasons: [...(sort.reasons ?? []), memory],
    },
  ];
}
