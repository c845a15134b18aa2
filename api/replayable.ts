import { RowSource } from '../connectors/rows/row-source.ts';
import { UsageError } from '../engine/errors.ts';
import { rootSource } from '../engine/stream/logical-plan.ts';
import type { PlannedRows } from './run-rows.ts';

/** True where the rows can be read more than once. */
export function isReplayable({ plan }: Pick<PlannedRows, 'plan'>): boolean {
  return rootSource(plan).replayable;
}

/**
 * Throws UsageError if the rows can be read only once; `purpose` names the work that reads them several
 * times.
 */
export function requireReplayable({ plan }: Pick<PlannedRows, 'plan'>, purpose: string): void {
  if (rootSource(plan).replayable) return;
  throw new UsageError(`${purpose} reads the rows more than once, but this source can be read only once`, {
    advice:
      rootSource(plan) instanceof RowSource
        ? 'Pass an array, or a function that makes the rows anew: session.fromRows(() => rows)'
        : 'Pass an array of batches, or { replayable: true } when each iteration starts anew',
  });
}
