import type { MatrixShape, PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { StepList } from '../step-list.ts';
import type { Wire } from '../step.ts';
import { type Located, sendRows, placeRows } from './send-rows.ts';

/**
 * The exchange reduce-scatter: each place gets the sums of its own slices (cuMF, section 4.2, Figure 5 a).
 * If places have groups, such as the GPUs of one socket, partial sums are first added inside each group, and
 * then one sum of each group is sent to the owner's group (Figure 5 b): (P0 + P1) + (P2 + P3). The returned
 * function adds one slice at a time.
 */
export function reduceScatter(
  list: StepList,
  stage: string,
  { slice: sliceOf, sum, shape }: Reduction,
  groups?: readonly (readonly Place[])[],
): (slice: number) => void {
  return (slice) => {
    const given = sliceOf(slice);
    const missing = groups && given.partials.find(({ at }) => !groups.some((group) => group.includes(at)));
    if (missing) throw new Error(`${stage}: no group has the place ${missing.at}`);
    const reduced =
      groups === undefined ? given : reduceInGroups(list, stage, given, groups, turnOf(given.owner, groups));
    reduceSlice(list, stage, reduced, sum(slice), (place) => shape(slice, place));
  };
}

/**
 * The owner's position in its group. In the other groups, the place at this position adds the slice's
 * partial sums.
 */
function turnOf(owner: Place, groups: readonly (readonly Place[])[]): number {
  return Math.max(0, ...groups.map((group) => group.indexOf(owner)));
}

/**
 * The exchange reduce-to-one: the partial sums of all slices are added at one place (the simple scheme of
 * cuMF, section 4.2, limited by the link of that place). The returned function adds one slice at a time.
 */
export function reduceToOne(
  list: StepList,
  stage: string,
  { slice: sliceOf, sum, shape }: Reduction,
): (slice: number) => void {
  let one: Place | undefined;
  return (slice) => {
    const given = sliceOf(slice);
    one ??= given.owner;
    if (given.owner !== one)
      throw new Error(`${stage}: reduce-to-one has one place for sums, not ${one} and ${given.owner}`);
    reduceSlice(list, stage, given, sum(slice), (place) => shape(slice, place));
  };
}

/** A slice of the rows; each device has a partial sum of it. */
export interface Slice {
  readonly rows: number;
  /**
   * The partial sums in part order. The sum is always ((P0 + P1) + P2) + ..., in any order of arrival. They
   * are freed afterwards.
   */
  readonly partials: readonly Located[];
  /** The place that gets the sum. */
  readonly owner: Place;
  /** Other places that get the same sum. */
  readonly also?: readonly Place[];
  /** See Gathering. */
  readonly wire: Wire | undefined;
}

export interface Reduction {
  /** Called for a slice when it is reduced. */
  slice(slice: number): Slice;
  sum(slice: number): PartitionRef;
  shape(slice: number, place: Place): MatrixShape;
}

/**
 * Adds the partial sums of other places, in part order, to the partial sum that is stored at `place`. Then
 * frees the others, and returns the name and the place of the sum. With two partial sums the order does not
 * matter, so the bits are the same at either place.
 */
function addUp(
  list: StepList,
  stage: string,
  { rows, wire }: Slice,
  partials: readonly Located[],
  place: Place,
): Located {
  const own = partials.find(({ at }) => at === place);
  if (own === undefined) throw new Error(`${stage}: ${place} has no partial sum to add others to`);
  addTo(
    list,
    stage,
    { rows, wire },
    own.ref,
    partials.filter((one) => one !== own),
    [place],
  );
  return own;
}

function addTo(
  list: StepList,
  stage: string,
  { rows, wire }: Pick<Slice, 'rows' | 'wire'>,
  sum: PartitionRef,
  addends: readonly Located[],
  places: readonly Place[],
): void {
  for (const addend of addends) {
    sendRows(list, stage, addend, places, wire, (place) =>
      list.task(stage, place, {
        kernel: 'add-rows',
        inputs: { addend: addend.ref },
        outputs: { sum },
        params: { from: 0, to: rows },
      }),
    );
    list.free(stage, addend.at, [addend.ref]);
  }
}

/** Adds a slice's partial sums at each of its places, as a new partition, in the same order everywhere. */
export function reduceSlice(
  list: StepList,
  stage: string,
  { rows, partials: [first, ...others], owner, also = [], wire }: Slice,
  sum: PartitionRef,
  shape: (place: Place) => MatrixShape,
): void {
  const places = [owner, ...also];
  for (const place of places) list.allocate(stage, place, sum, shape(place));
  sendRows(list, stage, first, places, wire, (place) =>
    placeRows(list, stage, place, { rows: first.ref, whole: sum }),
  );
  list.free(stage, first.at, [first.ref]);
  addTo(list, stage, { rows, wire }, sum, others, places);
}

/**
 * The first of two phases: adds the partial sums of a slice inside each group of places (cuMF, Figure 5 b).
 * In each group the place at position `turn` adds, unless the slice's owner is in the group: so the work of
 * all slices is spread over the places. Returns the slice with one sum for each group, in the order of
 * groups.
 */
export function reduceInGroups(
  list: StepList,
  stage: string,
  slice: Slice,
  groups: readonly (readonly Place[])[],
  turn: number,
): Slice {
  const { partials, owner } = slice;
  const sums = groups.flatMap((group) => {
    const own = partials.filter(({ at }) => group.includes(at));
    if (own.length === 0) return [];
    const places = group.filter((place) => own.some(({ at }) => at === place));
    return [addUp(list, stage, slice, own, places.includes(owner) ? owner : places[turn % places.length])];
  });
  return { ...slice, partials: sums };
}
