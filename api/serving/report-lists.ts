import { counted, formatCount } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChosenItems } from '../../operators/serving/choose-items.ts';

/** Ids that were asked for, and those that the model does not know. */
export interface Asked {
  readonly all: number;
  readonly unknown: number;
}

/** Warns of unknown users or items, which get `given`. */
export function reportUnknown(
  { all, unknown }: Asked,
  unit: 'user' | 'item',
  given: string,
  { events }: ExecutionContext,
): void {
  if (unknown === 0) return;
  const [are, get] = unknown === 1 ? ['is', 'gets'] : ['are', 'get'];
  const ids = `${formatCount(unknown)} of ${counted(all, unit)}`;
  events({ type: 'warning', text: `${ids} ${are} unknown to the model and ${get} ${given}` });
}

/** Warns of unknown ids in the lists allow and deny, and of lists with fewer than n entries. */
export function reportLists(
  { unknown }: ChosenItems,
  short: number,
  n: number,
  unit: 'users' | 'items',
  { events }: ExecutionContext,
): void {
  const [one, others] = unit === 'users' ? ['user', 'items'] : ['item', 'users'];
  if (unknown > 0)
    events({
      type: 'warning',
      text: `${counted(unknown, 'id')} of the lists allow and deny ${unknown === 1 ? 'is' : 'are'} unknown to the model`,
    });
  if (short > 0)
    events({
      type: 'warning',
      text: `${counted(short, one)} ${short === 1 ? 'has' : 'have'} fewer than ${n} ${others}`,
    });
}
