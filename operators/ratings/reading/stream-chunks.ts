import { keyArrays } from '../../../engine/keys/key-column.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { executePlan, type LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import { mapOrdered } from '../../../engine/stream/map-ordered.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { contracts, type TaskOf, type ValuesOf } from '../../tasks/tasks.ts';
import {
  chunkLimits,
  RatingChunk,
  ratingRows,
  type RatingTypes,
  typesOf,
  type ChunkOptions,
  type ChunkReading,
} from './rating-chunk.ts';
import type { NumberedChunk } from '../ids/numbered-chunk.ts';

const STAGE = 'index-ids';

/**
 * Reads the ratings of a plan that ends in SelectRatings in the calling thread. While it fills a chunk of
 * about a million rows, tasks number the ids of the chunk before.
 */
export async function streamChunks(
  plan: LogicalPlan,
  options: ChunkOptions,
  ctx: ExecutionContext,
): Promise<ChunkReading> {
  const input = await executePlan(plan, ctx);
  const types = typesOf(input.schema);
  return { types, chunks: chunksOfStream(input, types, options, ctx) };
}

async function* chunksOfStream(
  input: BatchStream,
  types: RatingTypes,
  { onRows }: ChunkOptions,
  ctx: ExecutionContext,
): AsyncGenerator<readonly NumberedChunk[]> {
  const name = dataSetName('ratings');
  // Chunks whose ids were numbered; the memory of these ids is reused.
  const recycled: RatingChunk[] = [];
  let partition = 0;
  const number = async (chunk: RatingChunk): Promise<NumberedChunk> => {
    const numbered = await numberChunk(chunk, name, partition++, ctx);
    recycled.push(chunk);
    return numbered;
  };
  const { parallelism } = hostDevice(ctx.executor).info;
  for await (const chunk of mapOrdered(filled(input, types, recycled, onRows), parallelism + 1, number))
    yield [chunk];
}

/** Fills chunks with the rows of a stream. */
async function* filled(
  input: BatchStream,
  types: RatingTypes,
  recycled: RatingChunk[],
  onRows: ChunkOptions['onRows'],
): AsyncGenerator<RatingChunk> {
  const newChunk = () => new RatingChunk(chunkLimits([], 0), types, false, { recycled: recycled.pop() });
  let chunk = newChunk();
  let rows = 0;
  for await (const batch of input) {
    const ratings = ratingRows(batch, types);
    for (let from = 0; from < batch.numRows;) {
      from += chunk.append(ratings, from);
      if (!chunk.isFull) continue;
      yield chunk;
      chunk = newChunk();
    }
    rows += batch.numRows;
    onRows?.(rows);
  }
  if (chunk.rows > 0) yield chunk;
}

async function numberChunk(
  chunk: RatingChunk,
  name: string,
  partition: number,
  ctx: ExecutionContext,
): Promise<NumberedChunk> {
  const [ids, codes, values, users, items] = ['ids', 'codes', 'values', 'users', 'items'].map(
    (part): PartitionRef => ({ name: `${name}/${part}`, partition, version: 0 }),
  );
  const { place } = hostDevice(ctx.executor).info;
  const { rows } = chunk;
  const task: TaskOf<'number-keys'> = {
    kernel: 'number-keys',
    inputs: { ids },
    outputs: { codes, users, items },
    params: { rows },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, place, task);
  steps.free(STAGE, place, [ids]);
  const given = chunk.ids();
  const columns = { ...keyArrays(given.users, 'user'), ...keyArrays(given.items, 'item') };
  const results = await runSteps(steps.steps, ctx, {
    given: [
      [ids, { layout: 'key-pairs', rows, columns }, place],
      [values, chunk.values(), place],
    ],
  });
  const [summary] = results.of(STAGE) as ValuesOf<'number-keys'>[];
  return {
    rows,
    codes,
    values,
    users: { keys: users, summary: summary.users },
    items: { keys: items, summary: summary.items },
  };
}
