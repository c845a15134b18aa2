import type { Place } from '../../../../engine/plan/place.ts';
import { exchangeCost } from '../../../../engine/run/exchanges/cost.ts';
import type { Links } from '../../../../engine/run/exchanges/traffic.ts';
import type { AlsProblem } from '../problem.ts';
import { requestedGrids } from '../../partitions.ts';
import { ratesOf } from '../../../planner/device-rates.ts';

type Grouped = Pick<AlsProblem, 'compute' | 'params' | 'solver' | 'places'>;

/**
 * Assumed rate of a link between devices of different groups (usually on different processor sockets),
 * relative to a link inside a group.
 */
const ACROSS = 0.5;

/**
 * The chosen way to add partial sums: in two phases, first inside groups of devices, if `groups` is given,
 * else in one.
 */
export interface ReduceWay {
  readonly groups?: readonly (readonly Place[])[];
  readonly seconds: number;
  /** Seconds of a single phase. */
  readonly onePhase: number;
}

/**
 * Groups of devices with faster links among each other: from the parameter `partitionGroups`, else one per
 * processor socket. Undefined if all links are equal.
 */
export function groupsOf({ compute, params, places }: Grouped): readonly (readonly Place[])[] | undefined {
  const { groups } = requestedGrids(params);
  if (groups !== undefined) {
    let first = 0;
    return groups.map((count) => places.slice(first, (first += count)));
  }
  const numbers = [...new Set(compute.map(({ group }) => group))];
  if (numbers.length < 2 || numbers.length === compute.length || numbers.includes(undefined))
    return undefined;
  return numbers.map((number) => compute.filter(({ group }) => group === number).map(({ place }) => place));
}

/** Links between the devices: equal inside groups, slower between groups. */
function linksOf(problem: Grouped): Links {
  const {
    compute: [device],
    places,
    solver,
  } = problem;
  const { exchange } = ratesOf(device, solver.cgSteps);
  const groups = groupsOf(problem);
  const near = (from: Place, to: Place) =>
    groups === undefined || groups.some((group) => group.includes(from) && group.includes(to));
  // `exchange` is the sum of a device's sending and receiving rates.
  return {
    places,
    duplex: false,
    bytesPerSecond: places.map((from) => places.map((to) => (near(from, to) ? exchange : ACROSS * exchange))),
  };
}

/**
 * The cheaper way to add partial sums of `bytes` from all devices: in one phase, or first inside groups and
 * then between them. Groups that a parameter requests are always used.
 */
export function reduceWay(problem: Grouped, bytes: number): ReduceWay {
  const { places, params } = problem;
  const links = linksOf(problem);
  const cost = (groups?: readonly (readonly Place[])[]) =>
    exchangeCost({ how: 'reduce-scatter', bytes, places, ...(groups ? { groups } : {}) }, links).seconds;
  const onePhase = cost();
  const groups = groupsOf(problem);
  if (groups === undefined) return { seconds: onePhase, onePhase };
  const seconds = cost(groups);
  return params.partitionGroups !== undefined || seconds < onePhase
    ? { groups, seconds, onePhase }
    : { seconds: onePhase, onePhase };
}

/**
 * Estimated seconds to send rows of `bytes` in total, of which each device has an equal share, to all
 * devices.
 */
export function spreadSeconds(problem: Grouped, bytes: number): number {
  return exchangeCost({ how: 'all-gather', bytes, places: problem.places }, linksOf(problem)).seconds;
}
