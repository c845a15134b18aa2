import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { leaveRatings } from '../ratings/leave-ratings.ts';
import type { AlsData } from './bind/als-data.ts';
import { placeRows, staysAt } from './place-ratings.ts';
import { sides } from './plan/grid.ts';

/**
 * Frees the host memory of ratings whose parts stay on the only device for the whole run. This is done after
 * the start, whose steps upload the ratings and make the lists of their rows. Nothing reads the ratings in
 * host memory again: if that device is lost, the run ends with the last copy of the factors.
 */
export async function leavePlaced(
  { byUser, byItem }: AlsData,
  bound: BoundPlan,
  [{ place, ownMemory }, ...others]: readonly DeviceInfo[],
  ctx: ExecutionContext,
): Promise<void> {
  if (!ownMemory || others.length > 0 || !staysAt(bound, place, 'in parts')) return;
  if (byUser.parts.length === 1 && byItem.parts.length === 1) return;
  await Promise.all(sides.map((side) => placeRows(bound, side, place, ctx)));
  await leaveRatings(byUser, bound.given['ratings-by-user'], place, ctx);
  await leaveRatings(byItem, bound.given['ratings-by-item'], place, ctx);
}
