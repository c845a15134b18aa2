import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computeDevice } from '../../../engine/run/devices.ts';
import { dataSetName, type Partition, partitionRef } from '../../../engine/partition.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorStride } from '../../planner/sizes.ts';
import type { ListMatrices, ListParts, ListSearch, SearchedLists } from '../../tasks/list-tasks.ts';
import { valuesOfStage } from '../../tasks/run-tasks.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';
import { type Found, maskInput, type SearchRequest, type SearchSpace } from '../search.ts';

const STAGE = 'search';
const STRIDE_STEP = 8;

/** Vectors in lists, in host memory: see ListParts. */
export interface ListIndex {
  /** Numbers of a vector that are searched, and the number of vectors. */
  readonly rank: number;
  readonly vectors: number;
  readonly normalized: boolean;
  /** The largest ‖θ_v‖. */
  readonly longest: number;
  /** See ListSearch. */
  readonly margin: number | null;
  /** Lists of the index that these lists are a part of. Default: they are all. */
  readonly wholeLists?: number;
  readonly centers: Float32Array;
  readonly starts: Uint32Array;
  readonly codes: Uint8Array;
  readonly guide: Uint32Array;
}

export function listsOf({ starts }: Pick<ListIndex, 'starts'>): number {
  return starts.length - 1;
}

/** Bytes of 8-bit numbers of one vector. */
export function codeWidth(rank: number): number {
  return 16 * Math.ceil(rank / 16);
}

/** Bytes of the index in host memory, which are its bytes in a file, too. */
export function listBytes({ centers, starts, codes, guide }: ListIndex): number {
  return centers.byteLength + starts.byteLength + codes.byteLength + guide.byteLength;
}

/** A list index that a device has, with all that a search needs. */
export interface PlacedLists {
  readonly parts: Omit<SearchedLists, 'mask'>;
  readonly search: Omit<ListSearch, 'n' | 'probes'>;
  readonly lists: number;
}

/** Parameters of searches that may change while a device has the index. */
export type ListTuning = Partial<Pick<ListSearch, 'margin' | 'wholeLists'>>;

/** Copies an index to the CPU device of `ctx`. Throws CapacityError if it does not fit. */
export async function placeLists(
  index: ListIndex,
  { vectors, width }: Pick<SearchSpace, 'vectors' | 'width'>,
  ctx: ExecutionContext,
): Promise<PlacedLists> {
  const { place } = computeDevice(ctx.executor).info;
  const name = dataSetName('lists');
  const ref = (part: string) => partitionRef(`${name}/${part}`);
  const { rank, normalized, longest, margin } = index;
  const [columns, lists] = [index.guide.length / 4, listsOf(index)];
  const host: ListParts = {
    centers: ref('centers'),
    starts: ref('starts'),
    codes: ref('codes'),
    guide: ref('guide'),
  };
  const matrices: ListMatrices = {
    centerRows: ref('center-rows'),
    radii: ref('radii'),
    coarse: ref('coarse'),
    columnGuide: ref('column-guide'),
    signs: ref('signs'),
  };
  const steps = new StepList(contracts);
  for (const [part, shape] of Object.entries(shapesOf(columns, lists, rank)))
    steps.allocate(STAGE, place, matrices[part as keyof ListMatrices], { ...shape, contents: 'any' });
  const task: TaskOf<'load-lists'> = { kernel: 'load-lists', inputs: host, outputs: matrices, params: {} };
  steps.task(STAGE, place, task);
  steps.free(STAGE, place, [host.centers, host.codes, host.guide]);
  const placed: PlacedLists = {
    parts: { ...matrices, starts: host.starts, vectors: ref('vectors') },
    search: { rank, width, normalized, longest, margin, wholeLists: index.wholeLists ?? lists },
    lists,
  };
  const given = (Object.keys(host) as (keyof ListParts)[]).map((part): Given => {
    const values = index[part];
    return [host[part], { layout: 'list-part', rows: values.length, columns: { values } }, place];
  });
  const all: Partition = { layout: 'vectors', rows: index.vectors, columns: { values: vectors } };
  try {
    await runSteps(steps.steps, ctx, { given: [...given, [placed.parts.vectors, all, place]] });
  } catch (error) {
    await dropLists(placed, ctx);
    throw error;
  }
  return placed;
}

/** Shapes of the matrices: see ListMatrices. */
function shapesOf(columns: number, lists: number, rank: number) {
  const codes = codeWidth(rank) / 4;
  // Four centers are compared at a time; three rows of other numbers are stored after the centers.
  const wide = 4 * Math.ceil(lists / 4);
  return {
    centerRows: { rows: wide + 4, columns: rank, stride: factorStride(rank, STRIDE_STEP) },
    radii: { rows: 1, columns: wide, stride: wide },
    coarse: { rows: columns, columns: codes, stride: codes },
    columnGuide: { rows: 4, columns, stride: columns },
    // 16 columns have a bit for each number: 4 * codes / 8 bytes each.
    signs: { rows: Math.ceil(columns / 16), columns: 2 * codes, stride: 2 * codes },
  };
}

/** Frees the memory of an index. */
export async function dropLists({ parts }: PlacedLists, ctx: ExecutionContext): Promise<void> {
  const { place } = computeDevice(ctx.executor).info;
  const steps = new StepList(contracts);
  steps.free(STAGE, place, Object.values(parts));
  await runSteps(steps.steps, ctx);
}

/** Numbers of the first `count` lists, in the order in which a search probes them. */
export async function rankLists(
  { parts, search }: PlacedLists,
  query: ArrayLike<number>,
  count: number,
  ctx: ExecutionContext,
): Promise<readonly number[]> {
  const task: TaskOf<'rank-lists'> = {
    kernel: 'rank-lists',
    inputs: parts,
    outputs: {},
    params: { ...search, n: 1, probes: count, query: Array.from(query) },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, computeDevice(ctx.executor).info.place, task);
  const results = await runSteps(steps.steps, ctx);
  const [{ lists }] = valuesOfStage(results, STAGE, task.kernel);
  return lists;
}

/** Columns of which a search computes the exact scores, ascending. */
export async function candidatesInLists(
  { parts, search }: PlacedLists,
  probes: number,
  { query, n, left = [] }: SearchRequest,
  ctx: ExecutionContext,
): Promise<readonly number[]> {
  const task: TaskOf<'list-candidates'> = {
    kernel: 'list-candidates',
    inputs: parts,
    outputs: {},
    params: { ...search, n, probes, query: Array.from(query), left: Array.from(left) },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, computeDevice(ctx.executor).info.place, task);
  const results = await runSteps(steps.steps, ctx);
  const [{ columns }] = valuesOfStage(results, STAGE, task.kernel);
  return columns;
}

/** The n of these rows with the highest products with the query, by the numbers of the rows. */
export async function bestOfRows(
  { parts, search }: PlacedLists,
  rows: Float32Array,
  { query, n }: Pick<SearchRequest, 'query' | 'n'>,
  ctx: ExecutionContext,
): Promise<Found> {
  const { place } = computeDevice(ctx.executor).info;
  const vectors = partitionRef(dataSetName('rows'));
  const count = rows.length / search.width;
  const allowed = Array.from({ length: count }, (_, row) => row);
  const task: TaskOf<'search-lists'> = {
    kernel: 'search-lists',
    inputs: { ...parts, vectors },
    outputs: {},
    params: { ...search, n, probes: 1, searches: [{ query: Array.from(query), left: [], allowed }] },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, place, task);
  steps.free(STAGE, place, [vectors]);
  const values: Partition = { layout: 'vectors', rows: count, columns: { values: rows } };
  const results = await runSteps(steps.steps, ctx, { given: [[vectors, values, place]] });
  const [{ found }] = valuesOfStage(results, STAGE, task.kernel);
  return { positions: found[0].items, scores: found[0].scores };
}

/** Searches for several queries with the same n, probes and mask, in one task. */
export async function searchInLists(
  { parts, search }: PlacedLists,
  probes: number,
  requests: readonly SearchRequest[],
  ctx: ExecutionContext,
): Promise<readonly Found[]> {
  const { place } = computeDevice(ctx.executor).info;
  const [{ mask, n }] = requests;
  const [masked, given] = maskInput(mask, place);
  const task: TaskOf<'search-lists'> = {
    kernel: 'search-lists',
    inputs: { ...parts, ...masked },
    outputs: {},
    params: {
      ...search,
      n,
      probes,
      searches: requests.map(({ query, left = [], allowed }) => ({
        query: Array.from(query),
        left: Array.from(left),
        ...(allowed && { allowed: Array.from(allowed) }),
      })),
    },
  };
  const steps = new StepList(contracts);
  steps.task(STAGE, place, task);
  if (masked.mask !== undefined) steps.free(STAGE, place, [masked.mask]);
  const results = await runSteps(steps.steps, ctx, { given });
  const [{ found }] = valuesOfStage(results, STAGE, task.kernel);
  return found.map(({ items, scores }) => ({ positions: items, scores }));
}
