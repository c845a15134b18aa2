import { CapacityError } from '../../../engine/errors.ts';
import { formatBytes, formatCount } from '../../../engine/format.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import {
  baseBytes,
  dataBytes,
  fitsBudget,
  leastBaseBytes,
  type MemoryBudget,
  neededBudget,
  requireBudget,
} from '../../planner/memory-budget.ts';
import { type RatingsProfile, blockLimit, partLoadingBytes } from '../../planner/sizes.ts';
import { planCheckpoints } from '../../training/planned-training.ts';
import type { AlsParams } from '../als-params.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import { describeGrid } from './candidates.ts';
import { planAls, planOrError } from './plan-als.ts';
import { type AlsGrid, gridOf, type Side, type AlsPlanOptions } from './problem.ts';

/**
 * Numbers of ratings in one file, in the order in which they are tried: from the fastest to the smallest that
 * is worth a file.
 */
const PART_RATINGS = [22, 21, 20, 19, 18].map((bits) => 2 ** bits);

/** Further sizes, for a budget that is only slightly larger than the needs of the process itself. */
const TIGHT_RATINGS = [2 ** 19, 2 ** 18];

/** Parts end at slices of rows, so the largest may exceed the average by about this factor. */
const SLACK = 1.05;

/**
 * Shares of the memory for data that a device without its own memory may use if parts of factors are in
 * files, in the order to try. The rest is for ratings and for parts on their way.
 */
const DEVICE_SHARES = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32];

/**
 * Most blocks of ratings in a half-iteration, for plans that are searched while a run waits: a plan of 512
 * blocks takes about half a second.
 */
const MOST_BLOCKS = 2 ** 9;

/**
 * Bytes for each rating of a part that is one long row: more than partLoadingBytes, since one thread sorts it
 * at once (50 M ratings of one pair took 40 bytes each).
 */
const LONG_ROW_BYTES = 42;

/** Larger budgets are not tried to find one that works. */
const MOST_BUDGET = 2 ** 44;

/**
 * The place of ratings during training. In memory if the plan fits the budget, in several parts if one block
 * cannot hold them; else in parts in files of the spill folder: in parts of at most a number of ratings
 * (`spill`), or in the parts of the plan's grid (`files`). `search`: the limits within which a plan was found
 * that keeps parts of the factors in files.
 */
export type RatingsStorage = { readonly plan: PhysicalPlan } & (
  | { readonly kind: 'memory'; readonly search?: StorageOptions }
  | { readonly kind: 'parts'; readonly grid: AlsGrid }
  | { readonly kind: 'spill'; readonly partRatings: number }
  | { readonly kind: 'files'; readonly grid: AlsGrid }
);

/** Options of planAls. */
export type StorageOptions = Pick<
  AlsPlanOptions,
  'grid' | 'files' | 'hostBytes' | 'deviceBytes' | 'mostBlocks'
>;

type PlanOf = (options: StorageOptions) => PhysicalPlan;

/** What a plan of a fit depends on, without the sizes of the ratings and the choice of kernels. */
export interface AlsSetting {
  readonly params: AlsParams;
  readonly devices: PlanDevices;
  readonly budget: MemoryBudget;
  /** True if ratings may be stored in several parts, or in files. */
  readonly mayBeInParts: boolean;
  /** Iterations between two checkpoints; undefined if there are none. */
  readonly interval: number | undefined;
}

/** The plan of a fit, refined by the counts of the sorted ratings. */
export interface Expected<Home extends RatingsStorage> {
  readonly home: Home;
  /** Number of parts into which each side was sorted. */
  readonly parts: Readonly<Record<Side, number>>;
  /** The devices that are left, after others were lost. Default: all. */
  readonly compute?: readonly DeviceInfo[];
}

/**
 * The plan of a fit, and where its ratings are stored. It is made from the sizes of the ratings as they were
 * read, and again when the ratings are sorted, from the sizes of those that are trained on. Then it only
 * refines the expected plan: ratings stay where they are, in the same parts (the type has the same `Home`).
 * Throws CapacityError.
 */
export function planFit(setting: AlsSetting, known: RatingsProfile, choices?: AlsChoices): RatingsStorage;
export function planFit<Home extends RatingsStorage>(
  setting: AlsSetting,
  known: RatingsProfile,
  choices: AlsChoices | undefined,
  expected: Expected<Home>,
): Home;
export function planFit(
  { params, devices, budget, mayBeInParts, interval }: AlsSetting,
  known: RatingsProfile,
  choices?: AlsChoices,
  expected?: Expected<RatingsStorage>,
): RatingsStorage {
  const planOf = (options: StorageOptions, { compute, params: own } = { compute: devices.compute, params }) =>
    planCheckpoints(planAls(known, own, { ...devices, compute }, choices, options), interval);
  if (expected === undefined) return chooseStorage(mayBeInParts, planOf, known.ratings, budget);
  const { home, parts, compute = devices.compute } = expected;
  // Groups name all devices, so after a device was lost the plan has no groups.
  const own = compute.length === devices.compute.length ? params : { ...params, partitionGroups: undefined };
  const left = { compute, params: own };
  if (home.kind === 'memory') return { ...home, plan: planOf(home.search ?? {}, left) };
  if (home.kind === 'spill')
    return { ...home, plan: planOf({ grid: spillGrid(parts.users, parts.items) }, left) };
  const { estimate, rejected } = home.plan;
  return { ...home, plan: { ...planOf({ grid: home.grid }, left), estimate, rejected } };
}

/** A user or item with its number of ratings. */
export interface CountedRow {
  /** Such as "user 17". */
  readonly name: string;
  readonly ratings: number;
}

/**
 * Chooses where ratings are stored, from the plans of `planOf`: in memory; in files; or in either, with parts
 * of the factors in files. Throws CapacityError with a budget that works if none of them fits, or if ratings
 * must stay in one block in memory (not `mayBeInParts`) and do not fit.
 */
export function chooseStorage(
  mayBeInParts: boolean,
  planOf: PlanOf,
  ratings: number,
  budget: MemoryBudget,
): RatingsStorage {
  const inOneBlock = ratings <= blockLimit.ratings;
  if (!mayBeInParts) {
    const plan = planOf({});
    requireBudget(plan, budget);
    if (inOneBlock) return { kind: 'memory', plan };
    throw new CapacityError(
      `${formatCount(ratings)} ratings are more than the ${formatCount(blockLimit.ratings)} of a block in memory`,
      { phase: 'plan', advice: 'Train without keeping the ratings for further runs' },
    );
  }
  const whole = planOrError(() => planOf({}));
  const inMemory = (plan: PhysicalPlan, search?: StorageOptions): RatingsStorage =>
    inOneBlock
      ? { kind: 'memory', plan, ...(search && { search }) }
      : { kind: 'parts', plan, grid: gridOf(plan) };
  if (whole.plan !== undefined && fitsBudget(whole.plan, budget)) return inMemory(whole.plan);
  const { home, least, error } = spilledHome(planOf, ratings, budget);
  if (home !== undefined) return home;
  const parted = partedPlan(planOf, budget);
  if (parted !== undefined) {
    const grid = gridOf(parted.plan);
    if (grid.users.ratings === 'spill') return { kind: 'files', plan: parted.plan, grid };
    return inMemory(parted.plan, parted.search);
  }
  throw refusal(planOf, budget, least, whole.error ?? error);
}

/**
 * Throws CapacityError if ratings are in files, and the row with the most ratings needs more memory than the
 * budget has: parts are cut between rows, so a part with this row has all its ratings.
 */
export function requireRowFits(
  home: RatingsStorage,
  ratings: number,
  row: CountedRow,
  budget: MemoryBudget,
): void {
  if (home.kind !== 'spill' && home.kind !== 'files') return;
  const { users, items } = gridOf(home.plan);
  const planned = Math.ceil(ratings / Math.min(users.q, items.q));
  const further = LONG_ROW_BYTES * row.ratings - partLoadingBytes(planned);
  const need = neededBudget(home.plan, budget, leastBaseBytes).bytes + further;
  if (further <= 0 || need <= budget.memoryBudget) return;
  throw new CapacityError(
    `${row.name} has ${formatCount(row.ratings)} ratings, which stay in one part: the run needs about ${formatBytes(need)} but the memory budget is ${formatBytes(budget.memoryBudget)}`,
    {
      phase: 'plan',
      advice: `Raise memoryBudget to ${formatBytes(Math.ceil(1.02 * need))} or more, or leave out or combine ratings of ${row.name} before the training`,
    },
  );
}

/** Ratings in files, with whole sides; if that does not fit, the plan that needs the least memory. */
function spilledHome(
  planOf: PlanOf,
  ratings: number,
  budget: MemoryBudget,
): {
  readonly home?: RatingsStorage;
  readonly least?: PhysicalPlan | undefined;
  readonly error?: CapacityError | undefined;
} {
  // At least two parts; with one the device would hold all ratings at once.
  const inParts = (most: number) => {
    const parts = Math.max(2, Math.ceil(ratings / most));
    const planned = planOrError(() => planOf({ grid: spillGrid(parts) }));
    return { ...planned, partRatings: Math.min(most, Math.ceil((SLACK * ratings) / parts)) };
  };
  let least: ReturnType<typeof inParts> | undefined;
  for (const [sizes, baseOf] of [
    [PART_RATINGS, baseBytes],
    [TIGHT_RATINGS, leastBaseBytes],
  ] as const) {
    for (const most of sizes) {
      least = inParts(most);
      const { plan, partRatings } = least;
      if (plan === undefined) return { error: least.error };
      if (fitsBudget(plan, budget, baseOf)) return { home: { kind: 'spill', plan, partRatings } };
    }
  }
  return { least: least?.plan };
}

/** A plan within a budget that may keep parts of the factors in files. */
function partedPlan(
  planOf: PlanOf,
  budget: MemoryBudget,
): { readonly plan: PhysicalPlan; readonly search: StorageOptions } | undefined {
  const data = dataBytes(budget);
  for (const share of DEVICE_SHARES) {
    const search = {
      files: true,
      mostBlocks: MOST_BLOCKS,
      deviceBytes: share * data,
      hostBytes: (1 - share) * data,
    };
    const { plan } = planOrError(() => planOf(search));
    if (plan !== undefined && fitsBudget(plan, budget)) return { plan, search };
  }
  return undefined;
}

/**
 * The error with a budget that works. `least`: the plan with ratings in files that needs the least memory;
 * `error`: the reason why the sides do not fit a device as a whole.
 */
function refusal(
  planOf: PlanOf,
  budget: MemoryBudget,
  least: PhysicalPlan | undefined,
  error: CapacityError | undefined,
): CapacityError {
  const need = least && neededBudget(least, budget, leastBaseBytes);
  // If even the largest budget is not enough, a device's own memory is too small.
  const most = partedPlan(planOf, { ...budget, memoryBudget: MOST_BUDGET }) === undefined ? 0 : MOST_BUDGET;
  for (let memoryBudget = budget.memoryBudget; ;) {
    memoryBudget = Math.max(2 * memoryBudget, 2 ** 28);
    const larger = { ...budget, memoryBudget };
    if (memoryBudget > most || (need !== undefined && memoryBudget / 2 > need.bytes)) break;
    const found = partedPlan(planOf, larger);
    if (found === undefined) continue;
    const exact = neededBudget(found.plan, budget, baseBytes);
    // The search within the exact budget may divide the memory in another way, and find nothing.
    const works = partedPlan(planOf, { ...budget, memoryBudget: exact.raised }) !== undefined;
    const raised = works ? exact.raised : memoryBudget;
    if (need !== undefined && need.raised <= raised) break;
    return exact.refusal(raised, ` (${describeGrid(gridOf(found.plan))})`);
  }
  if (need !== undefined) return need.refusal(need.raised);
  return error ?? noPlan();
}

function noPlan(): CapacityError {
  return new CapacityError('no plan fits', { phase: 'plan', advice: 'Use a smaller rank' });
}

/**
 * The grid of the plan for ratings in files, which are sent to the device part by part. The arguments are the
 * numbers of files of each side.
 */
export function spillGrid(users: number, items = users): AlsGrid {
  const side = { fixed: 'whole', factors: 'device', ratings: 'spill' } as const;
  return { users: { ...side, q: users }, items: { ...side, q: items } };
}
