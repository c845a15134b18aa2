import { DataError } from '../../engine/errors.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { constant, type ScopeStage } from '../../engine/run/scope.ts';
import { loadingStages } from '../planner/load-stages.ts';
import { type RatingsProfile, loadingBytes, spilledLoadingBytes } from '../planner/sizes.ts';
import type { SideAttributes } from '../attributes/attribute-matrix.ts';
import { loadedOnce } from '../ratings/kept-forms.ts';
import type { RatingSides } from '../ratings/ratings.ts';
import { evenRanges } from '../ratings/row-ranges.ts';
import { type OnSorted, type SortedRatings, type SortOptions, sortRatings } from '../ratings/sort-ratings.ts';
import type { FitRun, ReadRatings, SortedData, StagesOf } from '../training/fit.ts';
import type { AlsParams, SizedAlsParams } from './als-params.ts';
import type { AlsStart } from './factors.ts';
import { effectiveRatings } from './implicit/effective-ratings.ts';
import { type AlsChoices, compileKernels, guessKernels, NO_SIZES } from './kernel-choices.ts';
import { freePlaced, placeBlock, placeStart, startRef, staysAt, rowsTaskOf } from './place-ratings.ts';
import { isInBlocks } from './plan/problem.ts';
import type { AlsSetting, RatingsStorage } from './plan/ratings-home.ts';
import { drawRows, type SparkStart, startOfUsers } from './start.ts';

/** What a fit by ALS takes from earlier ones on the same ratings, and gives to later ones. */
export interface ContinuedAls {
  /** Initial factors, from a fit with the same rank and biases on the same ratings. */
  readonly start?: AlsStart | undefined;
  /** Attributes of users or items, which draw their factors to what these predict. */
  readonly attributes?: SideAttributes | undefined;
  /** Draws the initial factors of Spark's ALS, see sparkRows. */
  readonly sparkStart?: SparkStart | undefined;
  /** Receives the final factors. */
  readonly kept?: (factors: AlsStart) => void;
  /**
   * True if ALS should measure errors only after its first and last iteration; for a trial that cannot stop
   * early.
   */
  readonly measuresEnds?: boolean;
}

/** The expected plan, and what follows from it and the sizes of the ratings. */
export type AlsStorage = RatingsStorage & {
  readonly setting: AlsSetting;
  /** The parameters, after `auto` values of α and λ were computed from the sizes. */
  readonly params: SizedAlsParams;
  readonly devices: PlanDevices;
  /** See placesBlocks below. */
  readonly placesBlocks: boolean;
};

/** The facts about a fit that its stages of sorting need. */
interface SortingFit {
  readonly params: AlsParams;
  readonly form: string;
  readonly run: FitRun<unknown>;
  readonly continued: ContinuedAls;
}

export interface AlsSorted extends SortedData {
  /** All ratings. */
  readonly read: SortedRatings;
  /** The ratings without implicit ratings that have no effect, such as 0. */
  readonly sides: RatingSides;
  readonly drawn: ScopeStage<AlsStart | undefined>;
  /** Blocks that were sent to a device as soon as they were sorted. */
  readonly placed: readonly ScopeStage<unknown>[];
}

/**
 * Adds the stage that sorts the ratings, and stages that run at the same time: choosing and compiling
 * kernels, and drawing the initial factors. These may turn out to be useless, since the unit of the ratings
 * and the final plan become known only later.
 */
export function sortStages(
  fit: SortingFit,
  { opened, read, home }: StagesOf<{ opened: void; read: ReadRatings; home: AlsStorage }>,
): ScopeStage<AlsSorted> {
  const { scope } = fit.run;
  const kernels = fit.run.given ? constant('kernels', undefined) : kernelStages(fit, opened, read);
  const drawn = scope.speculate(
    'draw start',
    { read, home },
    (found, ctx) =>
      drawsStart(fit, found.home) ? placedStart(found.read, found.home.params, ctx) : undefined,
    { need: 'none', undo: async (start, ctx) => start && freePlaced([startRef(start.name)], ctx) },
  );
  return scope.stage(
    loadingStages.sort,
    { read, home, kernels },
    (found, ctx) => sorted(fit, found, drawn, ctx),
    { need: ({ read: { indexed }, home: { kind } }) => memoryOfSort(kind, indexed.rows) },
  );
}

/**
 * Adds the stages that choose and compile kernels. Compiling takes longest, so it starts before the ratings
 * have been read, with assumed sizes (NO_SIZES). Kernels are chosen again once the real sizes are known.
 */
function kernelStages(
  { params, run: { scope }, continued }: SortingFit,
  opened: ScopeStage<void>,
  read: ScopeStage<ReadRatings>,
): ScopeStage<AlsChoices | undefined> {
  const none = { features: 0, entries: 0 };
  const { users, items } = continued.attributes ?? {};
  const anySize = {
    ...NO_SIZES,
    attributes: { ...(users && { users: none }), ...(items && { items: none }) },
  };
  const profile = (read: ReadRatings | undefined) => (read ? profileOfRead(read) : anySize);
  const compiled = (name: string, known: ScopeStage<ReadRatings | undefined>) => {
    const kernels = scope.speculate(
      name,
      { opened, known },
      (found, ctx) => guessKernels(profile(found.known), params, ctx),
      { need: 'none' },
    );
    scope.speculate(
      'compile kernels',
      { known, kernels },
      (found, ctx) => found.kernels && compileKernels(found.kernels, profile(found.known), params, ctx),
      { need: 'none' },
    );
    return kernels;
  };
  compiled('kernels for any size', constant('sizes', undefined));
  return compiled('kernels by size', read);
}

function profileOfRead({ profile, indexed: { userCounts, itemCounts } }: ReadRatings): RatingsProfile {
  return { ...profile, longestUser: most(userCounts), longestItem: most(itemCounts) };
}

function most(counts: Int32Array): number {
  let largest = 0;
  for (let i = 0; i < counts.length; i++) if (counts[i] > largest) largest = counts[i];
  return largest;
}

/**
 * True if each block is sent to the device as soon as it is sorted, while other blocks are still being
 * sorted. This requires that the expected plan keeps all blocks on the device for the whole run. False for
 * implicit data, whose weights are known only after sorting.
 */
export function placesBlocks(
  home: RatingsStorage,
  { implicitPrefs }: AlsParams,
  { compute: [{ ownMemory, place }, ...others] }: PlanDevices,
): boolean {
  if (implicitPrefs || !ownMemory) return false;
  if (home.kind === 'memory') return staysAt(home.plan, place, 'whole');
  return (
    home.kind === 'parts' &&
    others.length === 0 &&
    !isInBlocks(home.grid, 'users') &&
    staysAt(home.plan, place, 'in parts')
  );
}

/** True if initial factors are drawn early, on the guess that ratings are not scaled (unit 1). */
function drawsStart({ run, continued }: SortingFit, { kind, placesBlocks: places }: AlsStorage): boolean {
  return (
    // Ratings in parts leave host memory when training starts, so this is done only for a single block.
    places &&
    kind === 'memory' &&
    !run.bounded &&
    run.checkpoints === undefined &&
    continued.start === undefined &&
    continued.sparkStart === undefined
  );
}

async function placedStart(
  { indexed: { users, items } }: ReadRatings,
  params: SizedAlsParams,
  ctx: ExecutionContext,
): ReturnType<typeof placeStart> {
  const rows = keyCount(users);
  const drawn = await drawRows(users, params, 1, evenRanges(rows, 128), ctx);
  return placeStart(startOfUsers(drawn, { users, items }, params), rows, ctx);
}

async function sorted(
  { form, run }: SortingFit,
  {
    read: { indexed },
    home,
    kernels,
  }: {
    readonly read: ReadRatings;
    readonly home: AlsStorage;
    readonly kernels: AlsChoices | undefined;
  },
  drawn: AlsSorted['drawn'],
  ctx: ExecutionContext,
): Promise<AlsSorted> {
  const { scope, ratings } = run;
  const placed: ScopeStage<unknown>[] = [];
  const place: OnSorted = (block, side, columns, of) => {
    const rows = kernels && rowsTaskOf(home.plan.round, side, columns, kernels[side]);
    const stage = scope.speculate('place ratings', {}, (_, held) => placeBlock(block, rows, of, held), {
      need: 'none',
      undo: freePlaced,
    });
    placed.push(stage);
  };
  const read = await loadedOnce(ratings.kept, `${form} blocks`, () =>
    sortRatings(
      indexed,
      {
        duplicates: ratings.duplicates,
        cut: cutOf(home),
        ...(home.placesBlocks && { sorted: place }),
      },
      ctx,
    ),
  );
  const implicit = home.params.implicitPrefs
    ? await loadedOnce(ratings.kept, `${form} implicit`, () => effectiveRatings(read, ctx))
    : undefined;
  const sides = implicit?.blocks ?? read;
  if (sides.byUser.ratings === 0)
    throw new DataError('no rating is above 0, so implicit data prefer nothing', {
      phase: 'load',
      advice: 'Give ratings above 0, or leave implicitPrefs out',
    });
  return { byRow: sides.byUser, duplicates: sides.duplicates, implicit, read, sides, drawn, placed };
}

/** The division into parts for ratings that exceed one block, or memory; undefined for one block. */
function cutOf(home: RatingsStorage): SortOptions['cut'] {
  if (home.kind === 'spill') return { partRatings: home.partRatings };
  if (home.kind === 'memory') return undefined;
  const { users, items } = home.grid;
  if (home.kind === 'files') return { fileParts: { users: users.q, items: items.q } };
  return { users: users.q, items: items.q, inBlocks: isInBlocks(home.grid, 'items') };
}

/**
 * Bytes that are needed during the sort, for the chunks and both blocks, and after it, for the blocks alone.
 */
function memoryOfSort(kind: RatingsStorage['kind'], rows: number) {
  if (kind !== 'memory') return undefined;
  return { during: loadingBytes(rows, true), left: spilledLoadingBytes(rows) };
}
