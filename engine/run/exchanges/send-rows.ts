import type { PartitionRef, MatrixShape } from '../../partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../plan/bound-plan.ts';
import { turnsOf } from '../../plan/grid-order.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { DataSet } from '../../plan/stages.ts';
import type { StepList } from '../step-list.ts';
import type { Wire } from '../step.ts';

/** A part of a data set at one of its places. */
export interface Located {
  readonly ref: PartitionRef;
  readonly at: Place;
  /** Other places that also have it. */
  readonly also?: readonly Place[];
  /**
   * The name of the part's rows while they are sent, and at the other places, if these keep their own
   * version. Default: `ref`.
   */
  readonly as?: PartitionRef;
}

/** Adds the task that writes rows into a matrix at a place, from row `rowFrom` on; returns the id of its step. */
export function placeRows(
  list: StepList,
  stage: string,
  place: Place,
  { rows, whole, rowFrom = 0 }: { rows: PartitionRef; whole: PartitionRef; rowFrom?: number },
): number {
  const params = { rowFrom };
  return list.task(stage, place, { kernel: 'place-rows', inputs: { rows }, outputs: { whole }, params });
}

/**
 * Sends the rows of a part to tasks at several places. `use` adds the task at a place and returns the id of
 * its step. A task at the part's own place reads the part directly. A task at another place reads a copy,
 * which is sent through host memory and freed after the task. The rows are downloaded once for all places.
 *
 * Places that compute in this process's memory have no wire form. Copies for them are made one at a time,
 * because each takes memory.
 */
export function sendRows(
  list: StepList,
  stage: string,
  { ref, at, also = [], as = ref }: Located,
  places: readonly Place[],
  wire: Wire | undefined,
  use: (place: Place) => number,
): void {
  const has = [at, ...also];
  for (const place of places) if (has.includes(place)) use(place);
  const others = places.filter((place) => !has.includes(place));
  if (others.length === 0) return;
  if (wire === undefined) {
    for (const place of others) {
      list.move(stage, ref, at, place, { as });
      use(place);
      list.free(stage, place, [as]);
    }
    return;
  }
  list.move(stage, ref, at, HOST, { wire, as });
  const read = others.map((place) => {
    list.move(stage, as, HOST, place, { wire });
    const id = use(place);
    list.free(stage, place, [as], { copies: true });
    return id;
  });
  // Copies for places with their own memory stay in host memory until their tasks have read them.
  list.free(stage, HOST, [as], { ended: read });
}

/** A copy of a part under its own name. */
interface Copy {
  readonly ref: PartitionRef;
  readonly at: Place;
  readonly shape: MatrixShape;
}

/** The exchange spread: copies the rows of a part to several places, each as its own partition. */
export function spreadRows(
  list: StepList,
  stage: string,
  part: Located,
  copies: readonly Copy[],
  wire: Wire | undefined,
): void {
  for (const { ref, at, shape } of copies) list.allocate(stage, at, ref, shape);
  const places = copies.map(({ at }) => at);
  sendRows(list, stage, part, places, wire, (to) =>
    placeRows(list, stage, to, { rows: part.ref, whole: copies[places.indexOf(to)].ref }),
  );
}

interface Gathering {
  /** Rows of each part, in order. */
  readonly rows: readonly number[];
  /** Called for a part when it is sent. */
  part(part: number): Located;
  readonly places: readonly Place[];
  /** The form in which rows are sent. Undefined if the places compute in this process's memory. */
  readonly wire: Wire | undefined;
  /** Names the matrix of all rows. */
  whole(): PartitionRef;
  shape(place: Place): MatrixShape;
}

/**
 * The exchange all-gather: every place gets the rows of all parts, as one matrix. Call the returned function
 * once for each part, in any order. A part is sent while later parts are computed.
 */
export function allGather(
  list: StepList,
  stage: string,
  { rows, part: partOf, places, wire, whole, shape }: Gathering,
): (part: number) => void {
  let matrix: PartitionRef | undefined;
  const begin = (): PartitionRef => {
    const made = whole();
    for (const place of places) list.allocate(stage, place, made, shape(place));
    return made;
  };
  return (part) => {
    const into = (matrix ??= begin());
    const located = partOf(part);
    const rowFrom = rows.slice(0, part).reduce((sum, count) => sum + count, 0);
    sendRows(list, stage, located, places, wire, (place) =>
      list.task(
        stage,
        place,
        {
          kernel: 'place-rows',
          inputs: { rows: located.ref },
          outputs: { whole: into },
          params: { rowFrom, ...(wire === 'i8' ? { rounded: true } : {}) },
        },
        { bands: { whole: part } },
      ),
    );
  };
}

/** The name of a data set's rows while they are sent from one place to another. */
export function passedName(data: string): string {
  return `passed-${data}`;
}

/**
 * Exchange of a part that several places hold and update one after the other: the rows at one place replace
 * the rows at the other places. `turn` distinguishes the exchanges of one round in the names of the rows that
 * are sent.
 */
export function passRows(
  list: StepList,
  stage: string,
  bound: BoundPlan,
  set: DataSet,
  { ref, at, turn }: { readonly ref: PartitionRef; readonly at: Place; readonly turn: number },
  places: readonly Place[],
): void {
  const as = partRef(bound, dataSetOf(bound, passedName(set.name)), ref.partition, turn);
  const place = (to: Place) => placeRows(list, stage, to, { rows: as, whole: ref });
  const ownMemory = bound.devices.some(({ ownMemory: own, place: one }) => own && one === at);
  sendRows(list, stage, { ref, at, as }, places, ownMemory ? (set.half ? 'f16' : 'f32') : undefined, place);
}

/**
 * The places that have the current contents of a part after a round: the last place that updated it, and the
 * first place that will update it in the next round, to which it was sent.
 */
export function holdersOf({ parts, turns }: DataSet, partition: number, round: number): readonly Place[] {
  const { at } = parts[partition];
  if (turns === undefined || round === 0) return at;
  const last = turnsOf(at.length, partition, turns, round).at(-1) ?? 0;
  return [at[last], at[turnsOf(at.length, partition, turns, round + 1)[0]]];
}

/**
 * One place that has the current contents of a part after a round: the first one that will update it in the
 * next round.
 */
export function holderOf({ parts, turns }: DataSet, partition: number, round: number): Place {
  const { at } = parts[partition];
  return turns === undefined ? at[0] : at[turnsOf(at.length, partition, turns, round + 1)[0]];
}
