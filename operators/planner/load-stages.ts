import { formatBytes } from '../../engine/format.ts';
import type { LoadStage } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { RatingsProfile } from './profile.ts';
import { loadingBytes, spilledLoadingBytes } from './sizes.ts';

/** The stages of reading, numbering and sorting; `sort`: the fields that differ between algorithms. */
export function loadStages(
  { ratings: nz, input }: RatingsProfile,
  place: Place,
  sort: Pick<LoadStage, 'kernel' | 'bytesWritten' | 'reasons'>,
): LoadStage[] {
  const memory = `loading takes up to ${formatBytes(loadingBytes(nz))} in memory; where a memory budget has less, ratings go by way of files and it takes ${formatBytes(spilledLoadingBytes(nz))}`;
  return [
    { name: 'read', at: [HOST], kernel: input ?? 'source', bytesWritten: 12 * nz },
    {
      name: 'index-ids',
      at: [place],
      kernel: 'number-keys',
      tasks: Math.ceil(nz / 2 ** 20),
      bytesRead: 12 * nz,
      bytesWritten: 12 * nz,
    },
    {
      name: 'rating-blocks',
      at: [place],
      bytesRead: 12 * nz,
      ...sort,
      reasons: [...(sort.reasons ?? []), memory],
    },
  ];
}
