import type { EventSink } from '../../engine/events.ts';
import { andThen, fromSource, runInto, schemaOf } from '../../engine/logical-plan.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { Source } from '../../engine/operator.ts';
import { ProfileRatings, type RatingsSummary } from '../../operators/profile-ratings.ts';
import { type RatingColumns, SelectRatings } from '../../operators/select-ratings.ts';

/** Counts what is in the columns, on this thread: no device takes part. Bad rows are left out and told in a warning. */
export async function profileDataset(source: Source, columns: RatingColumns, signal: AbortSignal, events: EventSink): Promise<RatingsSummary> {
  const executor = { devices: [], close: async () => {} };
  const plan = andThen(fromSource(source), new SelectRatings(columns, 'skip'));
  // Names the columns there are when one is missing.
  await schemaOf(plan);
  return runInto(plan, new ProfileRatings(), { signal, events, executor, metrics: new RunMetrics() });
}
