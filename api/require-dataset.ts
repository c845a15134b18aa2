import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/shown.ts';
import { Dataset } from './dataset.ts';

/** Throws UsageError unless `value` is a data set; `what` names the method that takes it. */
export function requireDataset(value: unknown, what: string): asserts value is Dataset {
  if (value instanceof Dataset) return;
  throw new UsageError(`${what} takes a data set, got ${shown(value)}`, {
    advice: 'Make one with session.read, session.fromRows or session.from',
  });
}
