import {
  dataSetName,
  type MatrixShape,
  type Partition,
  type PartitionRef,
  partitionRef,
} from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { freeAt, giveTo } from '../../engine/run/run-steps.ts';
import { factorStride } from '../planner/sizes.ts';
import type { ListMatrices, ListParts, ListSearch, SearchedLists } from '../tasks/list-tasks.ts';
import { TaskRun } from '../tasks/run-tasks.ts';
import type { SearchIndex } from '../tasks/search-tasks.ts';

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
  const columns = vectors.length / width;
  const ref = refsOf(dataSetName('search'));
  const index = { exact: ref('exact'), coarse: ref('coarse'), guide: ref('guide'), center: ref('center') };
  const space: Partition = { layout: 'vectors', rows: columns, columns: { values: vectors } };
  await fillIndex(index, indexShapes(columns, rank), ctx, (run) => {
    const inputs = { vectors: run.send('vectors', space) };
    run.task({ kernel: 'prepare-search', inputs, outputs: index, params: { width, rank, normalized } });
  });
  return index;
}

const refsOf = (name: string) => (part: string) => partitionRef(`${name}/${part}`);

/** Tasks on the CPU device of `ctx`. */
function runHere(ctx: ExecutionContext): TaskRun {
  return new TaskRun(ctx, STAGE, computeDevice(ctx.executor).info.place);
}

/**
 * Fills the matrices of an index by the task that `fill` adds; if that fails, frees them and the other parts of the
 * index.
 */
async function fillIndex(
  parts: Readonly<Record<string, PartitionRef>>,
  shapes: Readonly<Record<string, MatrixShape>>,
  ctx: ExecutionContext,
  fill: (run: TaskRun) => void,
): Promise<void> {
  const run = runHere(ctx);
  for (const [part, shape] of Object.entries(shapes)) run.keep(parts[part], { ...shape, contents: 'any' });
  fill(run);
  try {
    await run.end();
  } catch (error) {
    await dropIndex(parts, ctx);
    throw error;
  }
}

/** Frees the memory of an index: of a SearchIndex, or the parts of PlacedLists. */
export async function dropIndex(
  index: Readonly<Record<string, PartitionRef>>,
  ctx: ExecutionContext,
): Promise<void> {
  await freeAt(ctx, STAGE, computeDevice(ctx.executor).info.place, Object.values(index));
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
  const run = runHere(ctx);
  const inputs = { ...index, ...maskInput(run, requests[0].mask) };
  const searches = requests.map((one) => ({ query: Array.from(one.query), ...searchParams(one) }));
  run.task({ kernel: 'search', inputs, outputs: {}, params: { searches } });
  const [{ found }] = await run.values('search');
  return found.map(({ items, scores }) => ({ positions: items, scores }));
}

/** Sends the mask as an input of a run's task. */
export function maskInput(run: TaskRun, mask: Uint8Array | undefined): { readonly mask?: PartitionRef } {
  if (mask === undefined) return {};
  return { mask: run.send('mask', { layout: 'item-mask', rows: mask.length, columns: { values: mask } }) };
}

/** Parameters of the task that searches; the query and the mask are added. */
export function searchParams({ n, left = [], allowed }: Omit<SearchRequest, 'query' | 'mask'>) {
  return { n, left: Array.from(left), ...(allowed && { allowed: Array.from(allowed) }) };
}

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
  const ref = refsOf(dataSetName('lists'));
  const { rank, normalized, longest, margin } = index;
  const [columns, lists] = [index.guide.length / 4, listsOf(index)];
  const outputs: ListMatrices = {
    centerRows: ref('center-rows'),
    radii: ref('radii'),
    coarse: ref('coarse'),
    columnGuide: ref('column-guide'),
    signs: ref('signs'),
  };
  const parts = { ...outputs, starts: ref('starts'), vectors: ref('vectors') };
  const part = (name: keyof ListParts): Partition => ({
    layout: 'list-part',
    rows: index[name].length,
    columns: { values: index[name] },
  });
  const all: Partition = { layout: 'vectors', rows: index.vectors, columns: { values: vectors } };
  await giveTo(ctx, computeDevice(ctx.executor).info.place, [
    [parts.starts, part('starts')],
    [parts.vectors, all],
  ]);
  await fillIndex(parts, shapesOf(columns, lists, rank), ctx, (run) => {
    const sent = (name: keyof ListParts) => run.send(name, part(name));
    const inputs = {
      starts: parts.starts,
      centers: sent('centers'),
      codes: sent('codes'),
      guide: sent('guide'),
    };
    run.task({ kernel: 'load-lists', inputs, outputs, params: {} });
  });
  const search = { rank, width, normalized, longest, margin, wholeLists: index.wholeLists ?? lists };
  return { parts, search, lists };
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

/** Numbers of the first `count` lists, in the order in which a search probes them. */
export async function rankLists(
  { parts, search }: PlacedLists,
  query: ArrayLike<number>,
  count: number,
  ctx: ExecutionContext,
): Promise<readonly number[]> {
  const params = { ...search, n: 1, probes: count, query: Array.from(query) };
  const run = runHere(ctx);
  run.task({ kernel: 'rank-lists', inputs: parts, outputs: {}, params });
  const [{ lists }] = await run.values('rank-lists');
  return lists;
}

/** Columns of which a search computes the exact scores, ascending. */
export async function candidatesInLists(
  { parts, search }: PlacedLists,
  probes: number,
  { query, n, left = [] }: SearchRequest,
  ctx: ExecutionContext,
): Promise<readonly number[]> {
  const params = { ...search, n, probes, query: Array.from(query), left: Array.from(left) };
  const run = runHere(ctx);
  run.task({ kernel: 'list-candidates', inputs: parts, outputs: {}, params });
  const [{ columns }] = await run.values('list-candidates');
  return columns;
}

/** The n of these rows with the highest products with the query, by the numbers of the rows. */
export async function bestOfRows(
  { parts, search }: PlacedLists,
  rows: Float32Array,
  { query, n }: Pick<SearchRequest, 'query' | 'n'>,
  ctx: ExecutionContext,
): Promise<Found> {
  const run = runHere(ctx);
  const count = rows.length / search.width;
  const allowed = Array.from({ length: count }, (_, row) => row);
  const vectors = run.send('rows', { layout: 'vectors', rows: count, columns: { values: rows } });
  const [found] = await searchLists(run, { ...parts, vectors }, { ...search, probes: 1 }, [
    { query, n, allowed },
  ]);
  return found;
}

/** Searches for several queries with the same n, probes and mask, in one task. */
export function searchInLists(
  { parts, search }: PlacedLists,
  probes: number,
  requests: readonly SearchRequest[],
  ctx: ExecutionContext,
): Promise<readonly Found[]> {
  const run = runHere(ctx);
  const inputs = { ...parts, ...maskInput(run, requests[0].mask) };
  return searchLists(run, inputs, { ...search, probes }, requests);
}

async function searchLists(
  run: TaskRun,
  inputs: SearchedLists,
  search: Omit<ListSearch, 'n'>,
  requests: readonly SearchRequest[],
): Promise<readonly Found[]> {
  const searches = requests.map(({ query, left = [], allowed }) => ({
    query: Array.from(query),
    left: Array.from(left),
    ...(allowed && { allowed: Array.from(allowed) }),
  }));
  const params = { ...search, n: requests[0].n, searches };
  run.task({ kernel: 'search-lists', inputs, outputs: {}, params });
  const [{ found }] = await run.values('search-lists');
  return found.map(({ items, scores }) => ({ positions: items, scores }));
}
