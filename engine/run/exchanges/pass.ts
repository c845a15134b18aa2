import { type BoundPlan, dataSetOf, partRef } from '../../plan/bound-plan.ts';
import { turnsOf } from '../../plan/grid-order.ts';
import type { PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { DataSet } from '../../plan/stages.ts';
import type { StepList } from '../step-list.ts';
import { sendRows } from './send-rows.ts';

/** The name of the data set of rows that are being sent from place to place. */
export function passedName(data: string): string {
  return `passed-${data}`;
}

/**
 * The exchange of parts that several places hold and update by turns: the rows of a part at one place replace
 * the rows at others. `turn` distinguishes the rows sent in different turns of a round.
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
 * The places that have the current contents of a part after a round: the place that updated it last, and the
 * first one to update it in the next round.
 */
export function holdersOf({ parts, turns }: DataSet, partition: number, round: number): readonly Place[] {
  const { at } = parts[partition];
  if (turns === undefined || round === 0) return at;
  const last = turnsOf(at.length, partition, turns, round).at(-1) ?? 0;
  return [at[last], at[turnsOf(at.length, partition, turns, round + 1)[0]]];
}

/**
 * The place that has the current contents of a part after a round: the first one to update it in the next
 * round.
 */
export function holderOf({ parts, turns }: DataSet, partition: number, round: number): Place {
  const { at } = parts[partition];
  return turns === undefined ? at[0] : at[turnsOf(at.length, partition, turns, round + 1)[0]];
}
