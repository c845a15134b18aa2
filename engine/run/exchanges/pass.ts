import { type BoundPlan, dataSetOf, partRef } from '../../plan/bound-plan.ts';
import { turnsOf } from '../../plan/grid-order.ts';
import type { PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { DataSet } from '../../plan/stages.ts';
import type { StepList } from '../step-list.ts';
import { sendRows } from './send-rows.ts';

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
  const place = (to: Place) =>
    list.task(stage, to, {
      kernel: 'place-rows',
      inputs: { rows: as },
      outputs: { whole: ref },
      params: { rowFrom: 0 },
    });
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
