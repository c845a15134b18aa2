import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import { reduceWay } from '../../planner/groups.ts';
import type { Side } from './grid.ts';
import { type AlsProblem, partPlaces } from './problem.ts';

/**
 * The exchange in which sums of `bytes`, of which each of `sharing` devices has a part, add up at the places
 * of a side's rows: in two phases where that takes less time, or as asked.
 */
export function reduceStage(
  problem: AlsProblem,
  side: Side,
  {
    name,
    data,
    to,
    bytes,
    sharing,
  }: {
    readonly name: string;
    readonly data: string;
    readonly to: string;
    readonly bytes: number;
    readonly sharing: number;
  },
): Stage {
  const { groups, seconds, onePhase } = reduceWay(problem, bytes);
  const moved = `${formatBytes((sharing - 1) * bytes)} down and up`;
  const common = { name, at: partPlaces(problem, side) };
  if (groups === undefined)
    return {
      ...common,
      work: { kind: 'exchange', how: 'reduce-scatter', data: [data], to: [to] },
      exchange: `reduce-scatter: ${moved}`,
    };
  const reason = `partial sums add up inside ${groups.map((group) => group.join(' ')).join(' and ')} before they cross: about ${formatMilliseconds(1000 * seconds)}, and ${formatMilliseconds(1000 * onePhase)} in one phase`;
  return {
    ...common,
    work: { kind: 'exchange', how: 'reduce-scatter', data: [data], to: [to], groups },
    exchange: `reduce-scatter in two phases: ${moved}`,
    reasons: [reason],
  };
}
