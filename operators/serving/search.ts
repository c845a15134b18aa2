import { computeDevice } from '../../engine/run/devices.ts';
import { dataSetName, type PartitionRef, partitionRef } from '../../engine/partition.ts';
import type { Place } from '../../engine/plan/place.ts';
import { type Given, runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { factorStride } from '../planner/sizes.ts';
import { valuesOfStage } from '../tasks/run-tasks.ts';
import type { SearchIndex } from '../tasks/search-tasks.ts';
import { contracts, type TaskOf } from '../tasks/tasks.ts';

const STAGE = 'search';

/** Vectors to search: rows of `width` numbers in shared memory; the first `rank` numbers are used. */
export interface SearchSpace {
  readonly vectors: Float32Array;
  readonly width: number;
  readonly rank: number;
  /** Divide vectors by their length, for cosines. */
  readonly normalized: boolean;
}

export interface SearchRequest {
  readonly query: ArrayLike<number>;
  readonly n: number;
  /** `left`: positions to leave out, ascending. `allowed`: the only positions to search. */
  readonly left?: ArrayLike<number>;
  readonly allowed?: ArrayLike<number>;
  /** 1 for each position that may be found, in shared memory. */
  readonly mask?: Uint8Array | undefined;
}

/** Best first. */
export interface Found {
  readonly positions: readonly number[];
  readonly scores: readonly number[];
}

const STRIDE_STEP = 8;

/**
 * Shapes of the matrices of a search index of `columns` vectors; see SearchIndex for their contents. Searches
 * read columns in groups of four, so their number is rounded up.
 */
export function indexShapes(columns: number, rank: number) {
  const groups = 4 * Math.ceil(columns / 4);
  const bytes = 16 * Math.ceil(rank / 16);
  return {
    exact: { rows: columns, columns: rank, stride: factorStride(rank, STRIDE_STEP) },
    coarse: { rows: groups, columns: bytes / 4, stride: bytes / 4 },
    guide: { rows: 5, columns: groups, stride: groups },
    center: { rows: 3, columns: rank, stride: factorStride(rank, STRIDE_STEP) },
  } as const;
}

/** Bytes of device memory that an index takes. */
export function indexBytes(columns: number, rank: number): number {
  return Object.values(indexShapes(columns, rank)).reduce(
    (sum, { rows, stride }) => sum + 4 * rows * stride,
    0,
  );
}

/**
 * Makes a search index of vectors on the CPU device of `ctx`. The index is in the device's memory until
 * `dropIndex`. Throws CapacityError if it does not fit.
 */
export async function makeIndex(
  { vectors, width, rank, normalized }: SearchSpace,
  ctx: ExecutionContext,
): Promise<SearchIndex> {
  const { place } = computeDevice(ctx.executor).info;
  const columns = vectors.length / width;
  const name = dataSetName('search');
  const ref = (part: string) => partitionRef(`${name}/${part}`);
  const index: SearchIndex = {
    exact: ref('exact'),
    coarse: ref('coarse'),
    guide: ref('guide'),
    center: ref('center'),
  };
  const steps = new StepList(contracts);
  for (const [part, shape] of Object.entries(indexShapes(columns, rank)))
    steps.allocate(STAGE, place, index[part as keyof SearchIndex], { ...shape, contents: 'any' });
  const task: TaskOf<'prepare-search'> = {
    kernel: 'prepare-search',
    inputs: { vectors: ref('vectors') },
    outputs: index,
    params: { width, rank, normalized },
  };
  steps.task(STAGE, place, task);
  steps.free(STAGE, place, [task.inputs.vectors]);
  try {
    await runSteps(steps.steps, ctx, {
      given: [
        [task.inputs.vectors, { layout: 'vectors', rows: columns, columns: { values: vectors } }, place],
      ],
    });
  } catch (error) {
    await dropIndex(index, ctx);
    throw error;
  }
  return index;
}

/** Frees the memory of an index. */
export async function dropIndex(index: SearchIndex, ctx: ExecutionContext): Promise<void> {
  const { place } = computeDevice(ctx.executor).info;
  const steps = new StepList(contracts);
  steps.free(STAGE, place, Object.values(index));
  await runSteps(steps.steps, ctx);
}

/**
 * The n best vectors for each of several queries with the same mask, searched one after the other in a thread
 * of the device that has the index.
 */
export async function searchIndex(
  index: SearchIndex,
  requests: readonly SearchRequest[],
  ctx: ExecutionContext,
): Promise<readonly Found[]> {
  const { place } = computeDevice(ctx.executor).info;
  const [{ mask }] = requests;
  const [inputs, given] = maskInput(mask, place);
  const task: TaskOf<'search'> = {
    kernel: 'search',
    inputs: { ...index, ...inputs },
    outputs: {},
    params: {
      searches: requests.map((request) => ({ query: Array.from(request.query), ...searchParams(request) })),
    },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, place, task);
  if (inputs.mask !== undefined) steps.free(STAGE, place, [inputs.mask]);
  const results = await runSteps(steps.steps, ctx, { given });
  const [{ found }] = valuesOfStage(results, STAGE, task.kernel);
  return found.map(({ items, scores }) => ({ positions: items, scores }));
}

/** The mask as an input of one task, which frees it, and the partition to give to the device. */
export function maskInput(
  mask: Uint8Array | undefined,
  place: Place,
): readonly [inputs: { readonly mask?: PartitionRef }, given: readonly Given[]] {
  if (mask === undefined) return [{}, []];
  const ref = partitionRef(dataSetName('item-mask'));
  const partition = { layout: 'item-mask', rows: mask.length, columns: { values: mask } };
  return [{ mask: ref }, [[ref, partition, place]]];
}

/** Parameters of the task that searches; the query and the mask are added. */
export function searchParams({ n, left = [], allowed }: Omit<SearchRequest, 'query' | 'mask'>) {
  return { n, left: Array.from(left), ...(allowed && { allowed: Array.from(allowed) }) };
}
