import type { Place } from '../../engine/plan/place.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';

/**
 * The planned bytes of each place, of the course that the run took, beside those that it allocated; null
 * where none was measured.
 */
export function comparedMemory({
  memory,
  measuredMemory,
}: Pick<PhysicalPlan, 'memory' | 'measuredMemory'>): Record<
  Place,
  { readonly planned: number; readonly measured: number | null }
> {
  return Object.fromEntries(
    Object.entries(memory).map(([place, planned]) => [
      place,
      { planned, measured: measuredMemory?.[place] ?? null },
    ]),
  );
}
