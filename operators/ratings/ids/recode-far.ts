import type { KeyType } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../../engine/partition.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { contracts, type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import { valuesOfStage } from '../../tasks/run-tasks.ts';
import type { NumberedChunk, NumberedSide } from '../reading/rating-chunk.ts';

export const STAGE = 'index-ids';

export type Side = 'users' | 'items';

/**
 * The integer ids of a chunk may be coded by their distance from the chunk's least id (narrow-range codes).
 * Ids of all chunks are then counted in one table over the range of all ids, if the table has at most this
 * number of entries, or at most one entry for every two ratings.
 */
const TABLE_ENTRIES = 1 << 22;
/**
 * The least id, and the number of entries of a table that counts the ids of all chunks. Undefined if a chunk
 * has no narrow-range codes (see TABLE_ENTRIES), or if the table would be too large.
 */
export function tableRange(
  chunks: readonly NumberedChunk[],
  side: Side,
): readonly [least: number, entries: number] | undefined {
  let [least, greatest, rows] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (const chunk of chunks) {
    const { summary } = chunk[side];
    if (!('range' in summary)) return undefined;
    least = Math.min(least, summary.range[0]);
    greatest = Math.max(greatest, summary.range[1]);
    rows += chunk.rows;
  }
  const entries = greatest - least + 1;
  return entries <= Math.max(TABLE_ENTRIES, rows / 2) ? [least, entries] : undefined;
}

/** A chunk after its narrow-range codes were replaced by numbers of distinct ids. */
interface Recoded {
  readonly chunk: NumberedChunk;
  readonly task: TaskOf<'recode-ids'>;
  /** Partitions that the chunk no longer uses. */
  readonly replaced: readonly PartitionRef[];
}

/**
 * Replaces narrow-range codes (see TABLE_ENTRIES) by numbers of distinct ids, if the range of the ids of all
 * chunks is too wide for one table. `spilled`: codes are in files, and stay there.
 */
export async function recodeFar(
  chunks: readonly NumberedChunk[],
  types: Readonly<Record<Side, KeyType>>,
  spilled: boolean,
  ctx: ExecutionContext,
): Promise<readonly NumberedChunk[]> {
  const far = (['users', 'items'] as const).filter((side) => tableRange(chunks, side) === undefined);
  const name = dataSetName('recoded');
  const recoded = chunks.map((chunk, partition) => {
    const near = (side: Side) => {
      const { summary } = chunk[side];
      return far.includes(side) && 'range' in summary
        ? { least: summary.range[0], wide: types[side] === 'int64' }
        : null;
    };
    const ref = (part: string) => partitionRef(`${name}/${part}`, partition);
    return recodedChunk(chunk, { users: near('users'), items: near('items') }, ref);
  });
  const steps = recodingSteps(
    recoded.filter((made) => made !== undefined),
    spilled,
    ctx,
  );
  const values = [...valuesOfStage(await runSteps(steps, ctx), STAGE, 'recode-ids')];
  return recoded.map((made, c) =>
    made === undefined ? chunks[c] : withSummaries(made.chunk, values.shift() as ValuesOf<'recode-ids'>),
  );
}

/** Undefined for a chunk without narrow-range codes to replace. */
function recodedChunk(
  chunk: NumberedChunk,
  near: TaskOf<'recode-ids'>['params'],
  ref: (part: string) => PartitionRef,
): Recoded | undefined {
  if (near.users === null && near.items === null) return undefined;
  const outputs = {
    recoded: ref('codes'),
    ...(near.users && { users: ref('users') }),
    ...(near.items && { items: ref('items') }),
  };
  const side = (own: NumberedSide, keys: PartitionRef | undefined) =>
    keys === undefined ? own : { keys, summary: own.summary };
  return {
    chunk: {
      ...chunk,
      codes: outputs.recoded,
      users: side(chunk.users, outputs.users),
      items: side(chunk.items, outputs.items),
    },
    task: { kernel: 'recode-ids', inputs: { codes: chunk.codes }, outputs, params: near },
    replaced: [
      chunk.codes,
      ...(near.users ? [chunk.users.keys] : []),
      ...(near.items ? [chunk.items.keys] : []),
    ],
  };
}

/**
 * Steps with one task for each chunk. A chunk's old codes are freed only 2 * threads tasks later: tasks added
 * after a free wait for it, and by then the chunk's task has ended.
 */
function recodingSteps(recoded: readonly Recoded[], spilled: boolean, ctx: ExecutionContext) {
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const steps = new StepList(contracts);
  const frees: PartitionRef[][] = [];
  const spills: number[] = [];
  for (const { task, replaced } of recoded) {
    const before = frees.length - 2 * parallelism;
    if (before >= 0) steps.free(STAGE, place, frees[before]);
    steps.task(STAGE, place, task, { ended: before >= 0 ? spills.slice(before, before + 1) : [] });
    if (spilled) spills.push(steps.spill(STAGE, place, [task.outputs.recoded]));
    frees.push([...replaced]);
  }
  steps.free(STAGE, place, frees.slice(-2 * parallelism).flat());
  return steps.steps;
}

function withSummaries(chunk: NumberedChunk, { users, items }: ValuesOf<'recode-ids'>): NumberedChunk {
  return {
    ...chunk,
    users: { ...chunk.users, ...(users && { summary: users }) },
    items: { ...chunk.items, ...(items && { summary: items }) },
  };
}
