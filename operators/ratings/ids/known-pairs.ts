import type { RecordBatch } from 'apache-arrow';
import { batchPositions } from '../../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import {
  dataSetName,
  type PartitionRef,
  partitionRef,
  sharedArray,
  sharedCopy,
} from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo, runSteps } from '../../../engine/run/run-steps.ts';
import type { LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { blockLimit } from '../../planner/sizes.ts';
import { lookupOf } from '../../serving/factor-model.ts';
import { replacingSteps } from '../../tasks/run-tasks.ts';
import type { TaskOf, ValuesOf } from '../../tasks/tasks.ts';
import type { CodedChunk, RatingTypes } from '../reading/rating-chunk.ts';
import { readChunks } from '../reading/read-ratings.ts';
import { indexChunks, type IndexedRatings, bothSides, countPositions } from './number-ids.ts';
import { renumberChunks } from './relabel.ts';

const STAGE = 'known-pairs';

/** Known users and items, by position. */
export interface KnownIds {
  readonly users: KeyColumn;
  readonly items: KeyColumn;
}

export interface KnownPairs {
  /** Pairs whose user and item are both known; their codes are the ids' positions. */
  readonly indexed: IndexedRatings;
  /** Number of pairs with an unknown user or item. */
  readonly coldPairs: number;
}

/** Called with a batch and the positions of its users and items; UNKNOWN_KEY for unknown ones. */
export type OnCodes = (batch: RecordBatch, users: Uint32Array, items: Uint32Array) => void;

/** Numbered pairs; `own` is absent if there are none. */
export interface ReadPairs {
  readonly types: RatingTypes;
  readonly own?: IndexedRatings;
}

/** Reads the pairs of a plan that ends in SelectRatings, and numbers their ids. */
export async function readPairs(
  plan: LogicalPlan,
  splitBytes: number | undefined,
  ctx: ExecutionContext,
): Promise<ReadPairs> {
  const { numbered, types } = await readChunks(plan, { splitBytes, maximumRows: blockLimit.ratings }, ctx);
  if (numbered.length === 0) return { types };
  using _ = ctx.metrics.begin('number');
  return { types, own: await indexChunks(numbered, types, false, ctx) };
}

/**
 * Keeps the pairs whose user and item are known, and numbers them by the positions of the known ids. Other
 * pairs (cold pairs) are counted. Frees the chunks that it reads.
 */
export async function keepKnown(
  { own, types }: ReadPairs,
  { users, items }: KnownIds,
  ctx: ExecutionContext,
): Promise<KnownPairs> {
  if (own === undefined)
    return {
      indexed: {
        users,
        items,
        rows: 0,
        userCounts: new Int32Array(keyCount(users)),
        itemCounts: new Int32Array(keyCount(items)),
        chunks: [],
      },
      coldPairs: 0,
    };
  lookupOf(users).requireComparable(types.users, 'user');
  lookupOf(items).requireComparable(types.items, 'item');
  using _ = ctx.metrics.begin('number');
  const chunks = await renumberChunks(
    own.chunks,
    sharedPositions(users, own.users),
    sharedPositions(items, own.items),
    ctx,
  );
  const { place, parallelism } = hostDevice(ctx.executor).info;
  const name = dataSetName('pairs');
  const tasks = chunks.map(({ codes, values, userMap, itemMap }, partition) => {
    const ref = (part: string) => partitionRef(`${name}/${part}`, partition);
    const inputs = { codes, values, userMap: userMap as PartitionRef, itemMap: itemMap as PartitionRef };
    const outputs = { known: ref('codes'), ratings: ref('values') };
    const task: TaskOf<'keep-known'> = { kernel: 'keep-known', inputs, outputs, params: {} };
    return { task, frees: Object.values(inputs) };
  });
  const { steps } = replacingSteps(STAGE, place, tasks, 2 * parallelism);
  const rowsOf = (await runSteps(steps, ctx)).of(STAGE) as ValuesOf<'keep-known'>[];
  const coded = tasks
    .map(({ task: { outputs } }, c): CodedChunk => ({
      rows: rowsOf[c].rows,
      codes: outputs.known,
      values: outputs.ratings,
    }))
    .filter(({ rows }) => rows > 0);
  const rows = coded.reduce((sum, chunk) => sum + chunk.rows, 0);
  const [userCounts, itemCounts] = await bothSides((side) =>
    countPositions(coded, side, keyCount(side === 'users' ? users : items), ctx),
  );
  return {
    indexed: { users, items, rows, userCounts, itemCounts, chunks: coded },
    coldPairs: own.rows - rows,
  };
}

/** Reads the pairs of a plan that ends in SelectRatings, and keeps those with known ids. */
export async function readKnownPairs(
  plan: LogicalPlan,
  known: KnownIds,
  splitBytes: number | undefined,
  ctx: ExecutionContext,
): Promise<KnownPairs> {
  return keepKnown(await readPairs(plan, splitBytes, ctx), known, ctx);
}

/** The position of each of `others` among the known ids, in shared memory. */
function sharedPositions(known: KeyColumn, others: KeyColumn): Uint32Array {
  return sharedCopy(lookupOf(known).positionsOf(others));
}

/**
 * Numbers the pairs of a stream by the positions of known ids (a validation set by the training set's ids,
 * pairs to exclude by a model's). Pairs with an unknown id (cold pairs) are counted and removed. `onCodes` is
 * called with the codes of every batch. Input: `user`, `item` and optionally `rating`, from SelectRatings.
 */
export async function collectKnownPairs(
  input: BatchStream,
  users: KeyColumn,
  items: KeyColumn,
  ctx: ExecutionContext,
  onCodes?: OnCodes,
): Promise<KnownPairs> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('pairs');
  const [userLookup, itemLookup] = [lookupOf(users), lookupOf(items)];
  const ratingAt = input.schema.fields.findIndex((field) => field.name === 'rating');
  const userCounts = new Int32Array(keyCount(users));
  const itemCounts = new Int32Array(keyCount(items));
  const chunks: CodedChunk[] = [];
  let rows = 0;
  let coldPairs = 0;
  for await (const batch of input) {
    const userCodes = batchPositions(userLookup, batch, 'user');
    const itemCodes = batchPositions(itemLookup, batch, 'item');
    onCodes?.(batch, userCodes, itemCodes);
    const given = ratingAt < 0 ? undefined : (batch.data.children[ratingAt].values as Float32Array);
    const columns = {
      users: sharedArray(Uint32Array, batch.numRows),
      items: sharedArray(Uint32Array, batch.numRows),
    };
    const ratings = sharedArray(Float32Array, batch.numRows);
    let known = 0;
    for (let i = 0; i < batch.numRows; i++) {
      if (userCodes[i] === UNKNOWN_KEY || itemCodes[i] === UNKNOWN_KEY) continue;
      columns.users[known] = userCodes[i];
      columns.items[known] = itemCodes[i];
      userCounts[userCodes[i]]++;
      itemCounts[itemCodes[i]]++;
      if (given) ratings[known] = given[i];
      known++;
    }
    rows += known;
    coldPairs += batch.numRows - known;
    if (known === 0) continue;
    const ref = (part: string) => partitionRef(`${name}/${part}`, chunks.length);
    const chunk: CodedChunk = { rows: known, codes: ref('codes'), values: ref('values') };
    const codes = { users: columns.users.subarray(0, known), items: columns.items.subarray(0, known) };
    await giveTo(ctx, place, [
      [chunk.codes, { layout: 'coded-pairs', rows: known, columns: codes }],
      [chunk.values, { layout: 'values', rows: known, columns: { values: ratings.subarray(0, known) } }],
    ]);
    chunks.push(chunk);
  }
  return { indexed: { users, items, rows, userCounts, itemCounts, chunks }, coldPairs };
}
