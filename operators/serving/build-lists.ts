import { startPhase } from '../../engine/events.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
  type SharedColumn,
  sharedCopy,
} from '../../engine/partition.ts';
import { CounterRandom, randomOrder } from '../../engine/random.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { freeAt, giveTo } from '../../engine/run/run-steps.ts';
import { rangesOfSize } from '../ratings/row-ranges.ts';
import { TaskRun, type WholeTask } from '../tasks/run-tasks.ts';
import type { TaskOf } from '../tasks/tasks.ts';
import { type SearchSpace, codeWidth, type ListIndex } from './search.ts';

/** The vectors of each list: list l has members[offsets[l]] .. members[offsets[l + 1] - 1], ascending. */
interface ListMembers {
  readonly members: Uint32Array;
  readonly offsets: Uint32Array;
}

/**
 * Sorts vectors by list, keeping their order. `rows`: the vector of each entry of `assigned`; default the
 * entry's own number.
 *
 *     assigned 1 0 1   ->   members 1 0 2   offsets 0 1 3
 */
function byList(assigned: Uint32Array, lists: number, rows?: Uint32Array): ListMembers {
  const offsets = sharedArray(Uint32Array, lists + 1);
  for (const list of assigned) offsets[list + 1]++;
  for (let list = 0; list < lists; list++) offsets[list + 1] += offsets[list];
  const next = offsets.slice(0, lists);
  const members = sharedArray(Uint32Array, assigned.length);
  for (let i = 0; i < assigned.length; i++) members[next[assigned[i]]++] = rows === undefined ? i : rows[i];
  return { members, offsets };
}

/** The first `lists` vectors of a sample, one for each list. */
function firstMembers(sample: Uint32Array, lists: number): ListMembers {
  const offsets = sharedArray(Uint32Array, lists + 1);
  for (let list = 0; list <= lists; list++) offsets[list] = Math.min(list, sample.length);
  return { members: sample, offsets };
}

/**
 * Of two centers of a split list, one is moved by this part of its length along each feature, and one back.
 */
const SPLIT = 1 / 1024;

/**
 * Gives each empty list a center next to the center of the list with the most members, whose members the two
 * then share.
 */
function splitEmpty(means: Float32Array, offsets: Uint32Array, rank: number): void {
  const lists = offsets.length - 1;
  const sizes = Float64Array.from({ length: lists }, (_, list) => offsets[list + 1] - offsets[list]);
  const empty = [...sizes.keys()].filter((list) => sizes[list] === 0);
  if (empty.length === 0) return;
  const largest = [...sizes.keys()].sort((left, right) => sizes[right] - sizes[left] || left - right);
  empty.forEach((list, i) => {
    const from = largest[i % Math.max(1, lists - empty.length)];
    for (let k = 0; k < rank; k++) {
      const value = means[from * rank + k];
      const sign = (k + list) % 2 === 0 ? 1 : -1;
      means[list * rank + k] = value * (1 + sign * SPLIT);
      means[from * rank + k] = value * (1 - sign * SPLIT);
    }
  });
}

/** Columns whose spreads are measured. */
const MEASURED = 65_536;

/**
 * Two rows of `rank` numbers over evenly spaced columns: for each feature the mean of |d_k| / ‖d‖, and the
 * variance of d_k / ‖d‖ if its sign is known. d is the difference of a vector and the center of its list.
 * Scores are estimated from these numbers: see cpu/assembly/lists.ts.
 */
function measureSpreads({ codes, guide, rank }: Pick<ListIndex, 'codes' | 'guide' | 'rank'>) {
  const columns = guide.length / 4;
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const signed = new Int8Array(codes.buffer, codes.byteOffset, codes.length);
  const width = columns > 0 ? codes.length / columns : 0;
  const step = Math.max(1, Math.floor(columns / MEASURED));
  const [sums, squares] = [new Float64Array(rank), new Float64Array(rank)];
  let count = 0;
  for (let place = 0; place < columns; place += step) {
    const scale = numbers[2 * columns + place] / numbers[place];
    if (!(scale > 0 && scale < Infinity)) continue;
    count++;
    for (let k = 0; k < rank; k++) {
      const value = signed[place * width + k] * scale;
      sums[k] += Math.abs(value);
      squares[k] += value * value;
    }
  }
  const spreads = new Float32Array(2 * rank);
  for (let k = 0; k < rank; k++) {
    spreads[k] = count > 0 ? sums[k] / count : 0;
    spreads[rank + k] = count > 0 ? Math.max(0, squares[k] / count - spreads[k] ** 2) : 0;
  }
  return spreads;
}

const STAGE = 'lists';

/** Rounds of k-means, and vectors of its sample for each list. */
const ROUNDS = 8;
const SAMPLED = 64;

/** Vectors and lists of one task. */
const VECTORS_OF_TASK = 8_192;
const LISTS_OF_TASK = 64;

interface BuildListsOptions {
  /** Number of lists; at most the number of vectors. */
  readonly lists: number;
  readonly seed: number;
  /** The weight of each feature in distances: see queryWeights. */
  readonly weights: Float32Array;
}

/** Number of lists for a catalogue: four times the square root of its size. */
export function defaultLists(vectors: number): number {
  return Math.max(1, Math.min(Math.floor(vectors / 16), Math.round(4 * Math.sqrt(vectors))));
}

/**
 * The weights of features for queries: the root of the mean of x_k² over the queries, so that the weighted
 * distance of two vectors is about the difference of their scores. The mean weight is 1.
 */
export function queryWeights(queries: Float32Array, rank: number): Float32Array {
  const rows = queries.length / rank;
  const step = Math.max(1, Math.floor(rows / 65_536));
  const sums = new Float64Array(rank);
  for (let row = 0; row < rows; row += step)
    for (let k = 0; k < rank; k++) sums[k] += queries[row * rank + k] ** 2;
  const mean = sums.reduce((sum, value) => sum + Math.sqrt(value), 0) / rank;
  return Float32Array.from(sums, (value) => (mean > 0 ? Math.sqrt(value) / mean : 1));
}

/**
 * Distributes vectors over lists by k-means on a sample, in tasks of the CPU's threads. The same vectors and
 * seed give the same bits for any number of threads.
 */
export async function buildLists(
  space: SearchSpace,
  options: BuildListsOptions,
  ctx: ExecutionContext,
): Promise<ListIndex> {
  return Holdings.within(ctx, (held) => listsOfVectors(space, options, held));
}

async function listsOfVectors(
  { vectors, width, rank, normalized }: SearchSpace,
  { lists, seed, weights }: BuildListsOptions,
  ctx: ExecutionContext,
): Promise<ListIndex> {
  const count = vectors.length / width;
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('lists');
  const ref = (part: string) => partitionRef(`${name}/${part}`);
  const refs = <Part extends string>(...parts: Part[]) =>
    Object.fromEntries(parts.map((part) => [part, ref(part)])) as Record<Part, PartitionRef>;
  const give = (part: string, values: SharedColumn, layout = 'list-part') =>
    giveTo(ctx, place, [[ref(part), { layout, rows: values.length, columns: { values } }]]);
  /** Runs a task for each range of `size` rows of `rows`. */
  const run = <K extends 'assign-lists' | 'average-lists' | 'encode-lists'>(
    task: Omit<TaskOf<K>, 'params'>,
    rows: number,
    size: number,
  ) => {
    const tasks = new TaskRun(ctx, STAGE, place);
    const params = { width, rank, normalized };
    tasks.sliced<K>({ ...task, params } as unknown as WholeTask<K>, rangesOfSize(rows, size));
    return tasks.values(task.kernel);
  };
  const means = sharedArray(Float32Array, lists * rank);
  const assign = async (rows: number, sampled?: 'rows') => {
    const assigned = sharedArray(Uint32Array, rows);
    const centers = ref('centers');
    await giveTo(ctx, place, [[centers, weightedCenters(means, weights, lists)]]);
    await give('assigned', assigned);
    const inputs = { ...refs('vectors', 'centers', 'weights'), ...(sampled && refs(sampled)) };
    const outputs = { lists: ref('assigned') };
    await run<'assign-lists'>({ kernel: 'assign-lists', inputs, outputs }, rows, VECTORS_OF_TASK);
    await freeAt(ctx, STAGE, place, [centers]);
    return assigned;
  };
  const average = async ({ members, offsets }: ListMembers) => {
    await give('members', members);
    await give('offsets', offsets);
    const inputs = refs('vectors', 'members', 'offsets');
    await run<'average-lists'>(
      { kernel: 'average-lists', inputs, outputs: refs('means') },
      lists,
      LISTS_OF_TASK,
    );
  };

  // Positions of vectors, in random order.
  const size = Math.min(count, lists * SAMPLED);
  const order = randomOrder(size, new CounterRandom(seed));
  const sample = sharedCopy(order.map((at) => Math.floor((at * count) / size)));
  await give('vectors', vectors, 'vectors');
  await give('weights', sharedCopy(weights));
  await give('means', means);
  await give('rows', sample);
  const phase = startPhase(ctx.events, 'index', 'rounds', ROUNDS + 2);
  // The first centers are vectors in random order: the first of the sample.
  await average(firstMembers(sample, lists));
  for (let round = 0; round < ROUNDS; round++) {
    const members = byList(await assign(sample.length, 'rows'), lists, sample);
    await average(members);
    splitEmpty(means, members.offsets, rank);
    phase.progress(round + 1);
  }
  const members = byList(await assign(count), lists);
  phase.progress(ROUNDS + 1);
  await average(members);

  // Each list starts at a multiple of four columns.
  const starts = sharedArray(Uint32Array, lists + 1);
  for (let list = 0; list < lists; list++) {
    const length = members.offsets[list + 1] - members.offsets[list];
    starts[list + 1] = starts[list] + 4 * Math.ceil(length / 4);
  }
  const columns = starts[lists];
  const codes = sharedArray(Uint8Array, columns * codeWidth(rank));
  const guide = sharedArray(Uint32Array, 4 * columns);
  await give('starts', starts);
  await give('codes', codes);
  await give('guide', guide);
  const inputs = refs('vectors', 'members', 'offsets', 'starts', 'means');
  const values = await run<'encode-lists'>(
    { kernel: 'encode-lists', inputs, outputs: refs('codes', 'guide') },
    lists,
    LISTS_OF_TASK,
  );
  const centers = sharedArray(Float32Array, (lists + 3) * rank);
  centers.set(means);
  centers.set(measureSpreads({ codes, guide, rank }), (lists + 1) * rank);
  let most = 0;
  for (const { longest, differs } of values) {
    most = Math.max(most, longest);
    differs.forEach((one, k) => (centers[lists * rank + k] ||= one));
  }
  phase.end(ROUNDS + 2);
  const longest = Math.fround(most * (1 + 1e-6));
  return { rank, vectors: count, normalized, longest, margin: null, centers, starts, codes, guide };
}

/** The matrix of [w c, -‖w c‖² / 2]. */
function weightedCenters(means: Float32Array, weights: Float32Array, lists: number): Partition {
  const rank = weights.length;
  const values = sharedArray(Float32Array, lists * (rank + 1));
  for (let list = 0; list < lists; list++) {
    let squares = 0;
    const at = list * (rank + 1);
    for (let k = 0; k < rank; k++) {
      values[at + k] = means[list * rank + k] * weights[k];
      squares += values[at + k] ** 2;
    }
    values[at + rank] = -squares / 2;
  }
  return { layout: 'factors', rows: lists, columns: { values } };
}
