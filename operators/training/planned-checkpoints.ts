import { loadingStages } from '../planner/load-stages.ts';
import { formatBytes } from '../../engine/format.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST, SPILL } from '../../engine/plan/place.ts';
import type { DataSet, Stage } from '../../engine/plan/stages.ts';

/** Stage under which a run reports the time and bytes of its checkpoints. */
export const CHECKPOINT_STAGE = 'write-checkpoint';

/**
 * Bytes of the data sets that a plan's last stages move to the host: the factors. `files`: false to leave out
 * factors that stay in files.
 */
export function handedBytes(end: readonly Stage[], datasets: readonly DataSet[], files = true): number {
  const names = end.flatMap(({ work }) => (work.kind === 'exchange' && work.how === 'move' ? work.data : []));
  return datasets
    .filter(({ name }) => names.includes(name))
    .reduce(
      (sum, { columns = 1, parts }) =>
        sum +
        parts.reduce((all, { rows, at }) => all + (files || at[0] !== SPILL ? 4 * rows * columns : 0), 0),
      0,
    );
}

/**
 * Adds checkpoints every `every` rounds to a plan. They need memory for a copy of the factors on the host;
 * with early stop also for a copy of the best. Factors in files are kept there until they are written, and
 * read one part at a time.
 */
export function planCheckpoints(plan: PhysicalPlan, every: number | undefined): PhysicalPlan {
  if (every === undefined) return plan;
  const { end, datasets, devices, memory } = plan;
  const copies = plan.keep.best ? 2 : 1;
  const inMemory = copies * handedBytes(end, datasets, false);
  const written = copies * handedBytes(end, datasets);
  const inFiles = written - inMemory;
  const besides = inFiles > 0 ? ` and in files (${formatBytes(inFiles)})` : '';
  // If devices have their own memory, the plan already counts one copy of the factors on the host.
  const copied = inMemory - (devices[0].ownMemory ? handedBytes(end, datasets, false) : 0);
  const stage = {
    name: CHECKPOINT_STAGE,
    at: [HOST],
    work: { kind: 'grown', by: loadingStages.train } as const,
    bytesWritten: written,
    reasons: [
      `a copy of the factors in host memory (${formatBytes(inMemory)})${besides} is written while the next ` +
        'rounds run; the last two checkpoints are kept',
    ],
  };
  return {
    ...plan,
    checkpoint: { every, stage },
    memory: {
      ...memory,
      [HOST]: (memory[HOST] ?? 0) + copied + largestInFiles(plan),
      ...(inFiles > 0 && { [SPILL]: (memory[SPILL] ?? 0) + inFiles }),
    },
  };
}

/** Bytes of the largest part of the factors that is in a file; 0 if none is. */
function largestInFiles({ end, datasets }: PhysicalPlan): number {
  const parts = datasets.flatMap((set) => set.parts.map((part) => [{ ...set, parts: [part] }]));
  return Math.max(0, ...parts.map((one) => handedBytes(end, one) - handedBytes(end, one, false)));
}

/** True if a part of the factors has its home in a file. */
export function isInFiles({ phases: { end }, datasets }: BoundPlan): boolean {
  return handedBytes(end, datasets, false) < handedBytes(end, datasets);
}
