import type { Place } from '../../engine/plan/place.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';

/**
 * For each place: the bytes that the plan expected for the run as it went, and the bytes that the run
 * allocated (null if not measured).
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
