import { dataSetName, type PartitionRef } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { boundsOf } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { RowTasks } from '../pipeline/row-tasks.ts';
import type { RowsWork } from '../pipeline/rows-work.ts';
import { SampleKeys } from './sample-keys.ts';

/** The sample consists of every EVERYth row of at most MOST_TASKS tasks. */
const MOST_TASKS = 64;
const EVERY = 32;

/**
 * Chooses the bounds for dividing rows into parts by ranges of sort keys, from a sample of the rows. Returns
 * them as a partition at `place`; undefined if there are no rows.
 */
export async function rangeBounds(
  work: RowsWork,
  {
    keys,
    parts,
    place,
  }: { readonly keys: readonly SortKey[]; readonly parts: number; readonly place: Place },
  ctx: ExecutionContext,
): Promise<PartitionRef | undefined> {
  const sampled = (every: number, tasks: number) =>
    new RowTasks(work, ctx).samples((task) => new SampleKeys(keys, task, every), tasks);
  let samples = await sampled(EVERY, MOST_TASKS);
  // The sample may miss all rows if they are few; then the first rows of every task are used.
  if (samples.length === 0) samples = await sampled(1, Number.POSITIVE_INFINITY);
  if (samples.length === 0) return undefined;
  const bounds = boundsOf(samples, keys, parts);
  const stream = new RowStream(bounds.schema, false);
  stream.add(bounds);
  const ref: PartitionRef = { name: dataSetName('bounds'), partition: 0, version: 0 };
  const columns = { bytes: stream.takeShared() };
  await giveTo(ctx, place, [[ref, { layout: 'arrow-stream', rows: bounds.numRows, columns }]]);
  return ref;
}
