import { counted, formatCount } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChosenItems } from '../../operators/serving/choose-items.ts';

/** The warning about requested users that the model does not know. */
export function unknownText(unknown: number, all: number, given: string): string {
  const [are, get] = unknown === 1 ? ['is', 'gets'] : ['are', 'get'];
  const users = `${formatCount(unknown)} of ${counted(all, 'user')}`;
  return `${users} ${are} unknown to the model and ${get} ${given}`;
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
