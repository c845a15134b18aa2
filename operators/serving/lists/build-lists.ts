import {
  dataSetName,
  type PartitionRef,
  partitionRef,
  sharedArray,
  type SharedColumn,
} from '../../../engine/partition.ts';
import { startPhase } from '../../../engine/phase.ts';
import { CounterRandom, randomOrder } from '../../../engine/random.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { VectorShape } from '../../tasks/list-tasks.ts';
import { runTasks } from '../../tasks/run-tasks.ts';
import { contracts, type TaskOf } from '../../tasks/tasks.ts';
import type { SearchSpace } from '../search.ts';
import { codeWidth, type ListIndex } from './list-index.ts';

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
 * Scores are estimated from these numbers: see cpu/assembly/list-signs.ts.
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
  { vectors, width, rank, normalized }: SearchSpace,
  options: BuildListsOptions,
  ctx: ExecutionContext,
): Promise<ListIndex> {
  return Holdings.within(ctx, async (held) => {
    const build = new Build(vectors, { width, rank, normalized }, options, held);
    return build.make();
  });
}

class Build {
  readonly #vectors: Float32Array;
  readonly #shape: VectorShape;
  readonly #options: BuildListsOptions;
  readonly #ctx: ExecutionContext;
  readonly #name = dataSetName('lists');
  readonly #count: number;
  readonly #place: string;

  constructor(vectors: Float32Array, shape: VectorShape, options: BuildListsOptions, ctx: ExecutionContext) {
    [this.#vectors, this.#shape, this.#options, this.#ctx] = [vectors, shape, options, ctx];
    this.#count = vectors.length / shape.width;
    this.#place = hostDevice(ctx.executor).info.place;
  }

  async make(): Promise<ListIndex> {
    const { lists, seed, weights } = this.#options;
    const { rank } = this.#shape;
    await this.#give('vectors', this.#vectors, 'vectors');
    await this.#give('weights', shared(Float32Array, weights));
    const sample = this.#sample(lists, seed);
    const means = sharedArray(Float32Array, lists * rank);
    await this.#give('means', means);
    await this.#give('rows', sample);
    const phase = startPhase(this.#ctx.events, 'index', 'rounds', ROUNDS + 2);
    // The first centers are vectors in random order: the first of the sample.
    await this.#average(firstMembers(sample, lists));
    for (let round = 0; round < ROUNDS; round++) {
      const assigned = await this.#assign(means, sample.length, 'rows');
      const members = byList(assigned, lists, sample);
      await this.#average(members);
      splitEmpty(means, members.offsets, rank);
      phase.progress(round + 1);
    }
    const assigned = await this.#assign(means, this.#count);
    phase.progress(ROUNDS + 1);
    const members = byList(assigned, lists);
    await this.#average(members);
    const index = await this.#encode(members, means);
    phase.end(ROUNDS + 2);
    return index;
  }

  /** Positions of vectors, in random order, in shared memory. */
  #sample(lists: number, seed: number): Uint32Array {
    const size = Math.min(this.#count, lists * SAMPLED);
    const random = new CounterRandom(seed);
    const order = randomOrder(size, random);
    return shared(
      Uint32Array,
      order.map((place) => Math.floor((place * this.#count) / size)),
    );
  }

  async #assign(means: Float32Array, count: number, rows?: 'rows'): Promise<Uint32Array> {
    const assigned = sharedArray(Uint32Array, count);
    const inputs = {
      vectors: this.#ref('vectors'),
      centers: this.#ref('centers'),
      weights: this.#ref('weights'),
      ...(rows ? { rows: this.#ref('rows') } : {}),
    };
    await giveTo(this.#ctx, this.#place, [[this.#ref('centers'), this.#weighted(means)]]);
    await this.#give('assigned', assigned);
    await this.#run(count, VECTORS_OF_TASK, (range): TaskOf<'assign-lists'> => ({
      kernel: 'assign-lists',
      inputs,
      outputs: { lists: this.#ref('assigned') },
      params: { ...this.#shape, ...range },
    }));
    const steps = new StepList(contracts);
    steps.free(STAGE, this.#place, [inputs.centers]);
    await runSteps(steps.steps, this.#ctx);
    return assigned;
  }

  /** The matrix of [w c, -‖w c‖² / 2]. */
  #weighted(means: Float32Array) {
    const { rank } = this.#shape;
    const { lists, weights } = this.#options;
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

  async #average({ members, offsets }: ReturnType<typeof byList>): Promise<void> {
    await this.#give('members', members);
    await this.#give('offsets', offsets);
    await this.#run(offsets.length - 1, LISTS_OF_TASK, (range): TaskOf<'average-lists'> => ({
      kernel: 'average-lists',
      inputs: {
        vectors: this.#ref('vectors'),
        members: this.#ref('members'),
        offsets: this.#ref('offsets'),
      },
      outputs: { means: this.#ref('means') },
      params: { ...this.#shape, ...range },
    }));
  }

  async #encode({ offsets }: ReturnType<typeof byList>, means: Float32Array): Promise<ListIndex> {
    const { rank, normalized } = this.#shape;
    const { lists } = this.#options;
    const starts = sharedArray(Uint32Array, lists + 1);
    for (let list = 0; list < lists; list++)
      starts[list + 1] = starts[list] + 4 * Math.ceil((offsets[list + 1] - offsets[list]) / 4);
    const columns = starts[lists];
    const codes = sharedArray(Uint8Array, columns * codeWidth(rank));
    const guide = sharedArray(Uint32Array, 4 * columns);
    await this.#give('starts', starts);
    await this.#give('codes', codes);
    await this.#give('guide', guide);
    const values = await this.#run(lists, LISTS_OF_TASK, (range): TaskOf<'encode-lists'> => ({
      kernel: 'encode-lists',
      inputs: {
        vectors: this.#ref('vectors'),
        members: this.#ref('members'),
        offsets: this.#ref('offsets'),
        starts: this.#ref('starts'),
        means: this.#ref('means'),
      },
      outputs: { codes: this.#ref('codes'), guide: this.#ref('guide') },
      params: { ...this.#shape, ...range },
    }));
    const centers = sharedArray(Float32Array, (lists + 3) * rank);
    centers.set(means);
    centers.set(measureSpreads({ codes, guide, rank }), (lists + 1) * rank);
    let longest = 0;
    for (const one of values) {
      longest = Math.max(longest, one.longest);
      one.differs.forEach((differs, k) => (centers[lists * rank + k] ||= differs));
    }
    return {
      rank,
      vectors: this.#count,
      normalized,
      longest: Math.fround(longest * (1 + 1e-6)),
      margin: null,
      centers,
      starts,
      codes,
      guide,
    };
  }

  /** Runs a task for each range of `size` rows of `count`. */
  #run<K extends 'assign-lists' | 'average-lists' | 'encode-lists'>(
    count: number,
    size: number,
    taskOf: (range: { readonly from: number; readonly to: number }) => TaskOf<K>,
  ) {
    const tasks = Array.from({ length: Math.ceil(count / size) }, (_, i) =>
      taskOf({ from: i * size, to: Math.min(count, (i + 1) * size) }),
    );
    return runTasks<K>(this.#ctx, STAGE, this.#place, tasks);
  }

  #ref(part: string): PartitionRef {
    return partitionRef(`${this.#name}/${part}`);
  }

  async #give(part: string, values: SharedColumn, layout = 'list-part'): Promise<void> {
    await giveTo(this.#ctx, this.#place, [
      [this.#ref(part), { layout, rows: values.length, columns: { values } }],
    ]);
  }
}

function shared<T extends Float32Array | Uint32Array>(
  type: { new (buffer: ArrayBufferLike): T; readonly BYTES_PER_ELEMENT: number },
  values: T,
): T {
  const copy = sharedArray<T>(type, values.length);
  copy.set(values);
  return copy;
}
