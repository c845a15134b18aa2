import type { EventSink } from '../../engine/events.ts';
import { formatCount } from '../../engine/format.ts';
import type { TrainingWarning } from '../../operators/evaluation/rating-warnings.ts';

/** Excluded pairs that were read: the number of pairs that the model knows, and of the others. */
export interface ReadExclusions {
  readonly known: number;
  readonly unknown: number;
}

/**
 * Emits a note if the model does not know some of the pairs. If it knows less than half, emits and returns a
 * warning.
 */
export function reportExclusions(read: ReadExclusions, events: EventSink): TrainingWarning | undefined {
  const { known, unknown } = read;
  if (unknown === 0) return undefined;
  const code = 'unknown-exclusions';
  const count = unknown;
  if (known >= unknown) {
    const text = `${formatCount(unknown)} excluded pairs have a user or an item that the model does not know`;
    events({ type: 'note', code, count, text });
    return undefined;
  }
  const all = formatCount(known + unknown);
  const subject =
    known === 0
      ? `no pair of the option exclude is known to the model: ${all} pairs`
      : `only ${formatCount(known)} of ${all} pairs of the option exclude are known to the model: ${formatCount(unknown)}`;
  const text = `${subject} of unknown users or items, which exclude nothing. Check the ids, userCol and itemCol`;
  events({ type: 'warning', code, count, text });
  return { code, text };
}
