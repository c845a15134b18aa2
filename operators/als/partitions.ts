import { UsageError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';

/**
 * The kinds of sums that devices exchange if the fixed side is cut into vertical parts: normal equations, or
 * a vector per row in each step of conjugate gradients. Each device computes its vectors from its ratings
 * (`vectors`), or from the equations that it formed from them once (`partial-equations`).
 */
export const sumsOfParts = ['equations', 'vectors', 'partial-equations'] as const;

export type SumsOfParts = (typeof sumsOfParts)[number];

/**
 * Numbers of parts in a half-iteration: p vertical parts of the fixed side, q horizontal parts of the solved
 * side (cuMF, section 4).
 */
export interface RequestedPartition {
  readonly p: number;
  readonly q: number;
}

/**
 * The numbers of parts that the caller's parameters request, for the half-iterations that solve users and
 * items, and the kind of sums that devices exchange.
 */
export interface RequestedGrids {
  readonly users?: RequestedPartition;
  readonly items?: RequestedPartition;
  readonly sums?: SumsOfParts;
  /** Number of devices in each group; sums are added inside groups first. */
  readonly groups?: readonly number[];
}

/** The parameters of ALS that request numbers of parts. */
interface PartitionParams {
  readonly partitionUsers?: string;
  readonly partitionItems?: string;
  readonly partitionSums: 'auto' | SumsOfParts;
  readonly partitionGroups?: string;
}

const names = { users: 'partitionUsers', items: 'partitionItems' } as const;

/**
 * Reads the requested numbers of parts from the parameters. Throws UsageError for requests that no plan can
 * satisfy.
 */
export function requestedGrids(params: PartitionParams): RequestedGrids {
  const [users, items] = (['users', 'items'] as const).map((side) => parse(names[side], params[names[side]]));
  requireMatching('partitionUsers', users, items);
  requireMatching('partitionItems', items, users);
  const { partitionSums: sums } = params;
  const groups = groupsOf(params.partitionGroups);
  const ofVertical =
    sums === 'auto' ? groups && `partitionGroups ${params.partitionGroups}` : `partitionSums ${sums}`;
  if (ofVertical !== undefined && users?.p === 1 && items?.p === 1)
    throw new UsageError(
      `${ofVertical} acts only if a side is solved from vertical parts, and both partitions have 1`,
      { advice: 'Ask for several vertical parts, or leave it out' },
    );
  return {
    ...(users ? { users } : {}),
    ...(items ? { items } : {}),
    ...(sums === 'auto' ? {} : { sums }),
    ...(groups ? { groups } : {}),
  };
}

/**
 * Throws UsageError if both sides are requested and the vertical parts of one half-iteration are not the
 * parts in which the other half-iteration solves that side.
 */
function requireMatching(
  name: 'partitionUsers' | 'partitionItems',
  one: RequestedPartition | undefined,
  other: RequestedPartition | undefined,
): void {
  if (one === undefined || other === undefined || one.p === 1 || one.p === other.q) return;
  const solved = name === 'partitionUsers' ? 'items' : 'users';
  throw new UsageError(
    `${name} ${one.p},${one.q} has ${one.p} vertical parts, but the ${solved} are solved in ${other.q}`,
    {
      advice: `Give 1 or ${other.q} vertical parts: a fixed side is whole, or in the parts in which it is solved`,
    },
  );
}

/** Throws UsageError if groups do not add up to the number of devices. */
export function requireGroupsOf({ groups }: RequestedGrids, devices: number): void {
  if (groups === undefined) return;
  const all = groups.reduce((sum, count) => sum + count, 0);
  if (all !== devices || groups.length === 1)
    throw new UsageError(
      `partitionGroups ${groups.join(',')} has ${counted(all, 'device')} in ${counted(groups.length, 'group')}, and ${counted(devices, 'device')} ${devices === 1 ? 'computes' : 'compute'}`,
      {
        phase: 'plan',
        advice:
          devices < 3
            ? 'Leave it out: groups take three devices or more'
            : 'Give the devices of two or more groups, in their order',
      },
    );
}

function groupsOf(text: string | undefined): readonly number[] | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,2}(,[1-9]\d{0,2})*$/.test(text))
    throw new UsageError(`partitionGroups must be whole numbers from 1 on, got ${JSON.stringify(text)}`, {
      advice: 'Give the number of devices in each group, such as 2,2',
    });
  return text.split(',').map(Number);
}

/** Throws UsageError for more parts than a side has rows. */
export function requireRowsForParts(
  requested: RequestedGrids,
  rows: Readonly<Record<'users' | 'items', number>>,
): void {
  for (const [side, fixed] of [
    ['users', 'items'],
    ['items', 'users'],
  ] as const) {
    const one = requested[side];
    if (one === undefined) continue;
    const text = `${names[side]} ${one.p},${one.q}`;
    const advice = 'Ask for fewer parts, or leave them to the planner';
    if (one.q > rows[side])
      throw new UsageError(
        `${text} has ${counted(one.q, 'part')} of ${counted(rows[side], side.slice(0, -1))}`,
        { phase: 'plan', advice },
      );
    if (one.p > rows[fixed])
      throw new UsageError(
        `${text} has ${counted(one.p, 'vertical part')} of ${counted(rows[fixed], fixed.slice(0, -1))}`,
        { phase: 'plan', advice },
      );
  }
}

function parse(name: string, text: string | undefined): RequestedPartition | undefined {
  if (text === undefined) return undefined;
  const [p, q] = /^\d{1,7},\d{1,7}$/.test(text) ? text.split(',').map(Number) : [0, 0];
  if (p < 1 || q < 1)
    throw new UsageError(`${name} must be two whole numbers from 1 on, p,q, got ${JSON.stringify(text)}`, {
      advice: 'Give vertical parts of the fixed side and horizontal parts of the solved one, such as 1,4',
    });
  return { p, q };
}
