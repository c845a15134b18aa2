import { hostDevice } from '../../../engine/run/devices.ts';
import { keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import {
  dataSetName,
  type Partition,
  type PartitionRef,
  partitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { Task } from '../../../engine/task.ts';
import { lengthsWithout, type RepeatedPairs, requireOnce, sortRows } from './sort-rows.ts';
import type { IndexedRatings } from '../ids/index-ids.ts';
import type { RatingBlock } from '../rating-block.ts';
import type { HeldBlock } from '../ratings.ts';
import { balancedRanges, offsetsOf, taskCount } from '../row-ranges.ts';
import { leaveRoom } from './pair-room.ts';
import { GROUP_RATINGS, inputsOf, partitionsOf, sortChunks } from './sort-into-rows.ts';
import { contracts, type DuplicatePolicy, type ValuesOf } from '../../tasks/tasks.ts';
import type { CodedChunk } from '../reading/rating-chunk.ts';

const STAGE = 'rating-parts';

/** Default number of ratings in a part. */
const PART_RATINGS = 1 << 22;

/**
 * Without files, a task cuts enough chunks together that each part gets a piece of about a quarter of a
 * chunk, a megabyte. Such a piece has memory pages of its own, which the system gets back when the part is
 * sorted; the process's allocator would keep the memory of smaller pieces (see pagedArray).
 */
const PARTS_OF_A_CHUNK = 4;

/** Most chunks that one task cuts together; a thread has all of them in memory. */
const MOST_TOGETHER = 16;

export interface PartOptions {
  /**
   * Most ratings of a part. A part consists of whole slices (ranges of rows for one task); a larger slice is
   * a part of its own.
   */
  readonly partRatings?: number | undefined;
  /** The rows of each part, instead of a limit of ratings. */
  readonly cuts?: Readonly<Record<'users' | 'items', readonly RowRange[]>>;
  /** Keeps all but the current part in files of the run's spill folder. */
  readonly spills: boolean;
  /** If false, `byItem` is not called. */
  readonly bothSides: boolean;
}

/**
 * Sorts numbered ratings into parts of adjacent rows, in row order: first by user, then by item. If `spills`,
 * only the current part and the tasks' data are in memory, so there may be more ratings than memory can hold.
 * The consumer owns each part: before it requests the next one, it may free it (`block.ref` at the CPU's
 * place), write it to a file or send it on. A part has the same bits as these rows in one block of all
 * ratings.
 */
export class RatingParts {
  readonly #indexed: IndexedRatings;
  readonly #policy: DuplicatePolicy;
  readonly #options: PartOptions;
  readonly #ctx: ExecutionContext;
  readonly #slices: Readonly<Record<'users' | 'items', readonly RowRange[]>>;
  readonly #itemRanges: readonly RowRange[];
  /** Chunks of each part by item. */
  readonly #ofItems: CodedChunk[][];
  readonly #removed: Uint32Array[] = [];
  #repeated: RepeatedPairs = { extra: 0, row: -1, column: -1 };

  /** Takes ownership of the chunks. */
  constructor(indexed: IndexedRatings, policy: DuplicatePolicy, options: PartOptions, ctx: ExecutionContext) {
    [this.#indexed, this.#policy, this.#options, this.#ctx] = [indexed, policy, options, ctx];
    this.#slices = options.cuts ?? {
      users: this.#slicesOf(indexed.userCounts),
      items: options.bothSides ? this.#slicesOf(indexed.itemCounts) : [],
    };
    this.#itemRanges = options.bothSides ? this.#cut(indexed.itemCounts, 'items') : [];
    this.#ofItems = this.#itemRanges.map(() => []);
  }

  /**
   * Ranges of rows for the tasks of a pass over all ratings, in order; a part ends where a slice ends. They
   * equal the slices of one block of all ratings, unless ratings are removed or parts are smaller than
   * slices.
   */
  get slices(): Readonly<Record<'users' | 'items', readonly RowRange[]>> {
    return this.#slices;
  }

  /** Number of ratings that repeat an earlier pair, in the parts so far. */
  get duplicates(): number {
    return this.#repeated.extra;
  }

  /** May be called once. */
  async *byUser(): AsyncGenerator<HeldBlock, void> {
    const { room } = this.#indexed;
    const ranges = this.#cut(this.#indexed.userCounts, 'users');
    const chunks = await this.#splitChunks(ranges);
    if (room) await leaveRoom(room, false, this.#ctx);
    for (const [p, { from, to }] of ranges.entries()) {
      const userCounts = this.#indexed.userCounts.subarray(from, to);
      const rows = chunks[p].reduce((sum, chunk) => sum + chunk.rows, 0);
      const { block, repeated, removed } = await sortRows(
        { ...this.#indexed, rows, userCounts, chunks: chunks[p] },
        this.#policy,
        { by: 'users', firstRow: from },
        this.#ctx,
      );
      this.#repeated = {
        ...(this.#repeated.extra > 0 ? this.#repeated : repeated),
        extra: this.#repeated.extra + repeated.extra,
      };
      if (this.#policy === 'error' && this.#repeated.extra > 0) {
        // The error needs only the number of repeated pairs in the remaining parts, so the blocks are freed.
        await this.#free(block);
        continue;
      }
      this.#removed.push(...removed);
      if (this.#options.bothSides) await this.#splitBlock(block, from);
      yield { from, firstColumn: 0, block };
    }
    if (this.#policy === 'error') requireOnce(this.#repeated, this.#indexed);
  }

  async #free(block: RatingBlock): Promise<void> {
    const steps = new StepList({});
    steps.free(STAGE, hostDevice(this.#ctx.executor).info.place, [block.ref]);
    await runSteps(steps.steps, this.#ctx);
  }

  /** May be called once, after `byUser`. */
  async *byItem(): AsyncGenerator<HeldBlock, void> {
    const lengths = lengthsWithout(this.#indexed.itemCounts, this.#removed);
    const name = dataSetName('items');
    for (const [p, { from, to }] of this.#itemRanges.entries()) {
      const shape = {
        lengths: lengths.subarray(from, to),
        columns: keyCount(this.#indexed.users),
        order: 'kept',
      } as const;
      const { block } = await sortChunks(
        this.#ofItems[p],
        'items',
        shape,
        undefined,
        partitionRef(name, p),
        this.#ctx,
      );
      yield { from, firstColumn: 0, block };
    }
  }

  #slicesOf(counts: Int32Array): RowRange[] {
    const { rows: ratings } = this.#indexed;
    return balancedRanges(offsetsOf(counts), Math.max(taskCount(ratings), Math.ceil(ratings / this.#most)));
  }

  get #most(): number {
    return this.#options.partRatings ?? PART_RATINGS;
  }

  /**
   * The rows of each part: the given cuts, else runs of slices with at most the maximum of ratings; a larger
   * slice is a part of its own.
   */
  #cut(counts: Int32Array, side: 'users' | 'items'): readonly RowRange[] {
    if (this.#options.cuts !== undefined) return this.#options.cuts[side];
    const ranges: { from: number; to: number }[] = [];
    let ratings = 0;
    for (const { from, to } of this.#slices[side]) {
      let own = 0;
      for (let row = from; row < to; row++) own += counts[row];
      const last = ranges.at(-1);
      if (last !== undefined && ratings + own <= this.#most) {
        last.to = to;
        ratings += own;
      } else {
        ranges.push({ from, to });
        ratings = own;
      }
    }
    return ranges;
  }

  /** Divides the input chunks among the parts by user. Returns the chunks of each part. */
  #splitChunks(ranges: readonly RowRange[]): Promise<CodedChunk[][]> {
    const { chunks, userCounts, swapped } = this.#indexed;
    const by = swapped ? 'items' : 'users';
    const together = this.#options.spills
      ? 1
      : Math.min(MOST_TOGETHER, Math.ceil(ranges.length / PARTS_OF_A_CHUNK));
    const groups = Array.from({ length: Math.ceil(chunks.length / together) }, (_, g) =>
      chunks.slice(g * together, (g + 1) * together),
    );
    const tasks = groups.map((group): SplitTask => ({
      task: {
        kernel: 'split-pairs',
        inputs: inputsOf(group, by, ['codes', 'values', 'rowMap', 'columnMap']),
        params: { by, chunks: group.length },
      },
      frees: group.flatMap(partitionsOf),
    }));
    return this.#split(tasks, ranges, userCounts.length, together);
  }

  /** Divides a sorted part by user among the parts by item, and adds the pieces to their chunks. */
  async #splitBlock(block: RatingBlock, firstRow: number): Promise<void> {
    const ranges = balancedRanges(block.offsets, Math.ceil(block.ratings / GROUP_RATINGS));
    const tasks = ranges.map((range): SplitTask => ({
      task: { kernel: 'split-block', inputs: { block: block.ref }, params: { ...range, firstRow } },
      frees: [],
    }));
    const chunks = await this.#split(tasks, this.#itemRanges, this.#indexed.itemCounts.length);
    chunks.forEach((own, p) => this.#ofItems[p].push(...own));
  }

  /**
   * Runs tasks that divide ratings among parts; part p gets the rows of `ranges[p]`. To limit memory, a task
   * starts only after the outputs of the task `ahead` places before it are in files and that task's inputs
   * are freed.
   */
  async #split(
    tasks: readonly SplitTask[],
    ranges: readonly RowRange[],
    rows: number,
    together = 1,
  ): Promise<CodedChunk[][]> {
    const { place, parallelism } = hostDevice(this.#ctx.executor).info;
    const ahead = Math.ceil(parallelism * (1 + 1 / together));
    const name = dataSetName('parts');
    const parts = partitionRef(`${name}/rows`);
    const refs = tasks.map((_, partition) =>
      ranges.map((_, p) =>
        (['codes', 'values'] as const).map((part) => partitionRef(`${name}/${part}.${p}`, partition)),
      ),
    );
    const steps = new StepList(contracts);
    const spilled: number[] = [];
    for (const [t, { task }] of tasks.entries()) {
      if (t >= ahead) steps.free(STAGE, place, tasks[t - ahead].frees);
      const outputs = Object.fromEntries(
        refs[t].flatMap(([codes, values], p) => [
          [`partCodes.${p}`, codes],
          [`partValues.${p}`, values],
        ]),
      );
      steps.task(
        STAGE,
        place,
        { ...task, inputs: { ...task.inputs, parts }, outputs },
        { ended: spilled.slice(t - ahead, Math.max(0, t - ahead + 1)) },
      );
      if (this.#options.spills) spilled.push(steps.spill(STAGE, place, refs[t].flat()));
    }
    steps.free(STAGE, place, [parts, ...tasks.slice(-ahead).flatMap(({ frees }) => frees)]);
    const values = (
      await runSteps(steps.steps, this.#ctx, { given: [[parts, partsOfRows(ranges, rows), place]] })
    ).of(STAGE) as ValuesOf<'split-pairs'>[];
    const freeing = new StepList(contracts);
    freeing.free(
      STAGE,
      place,
      refs.flatMap((own, t) => own.filter((_, p) => values[t].ratings[p] === 0).flat()),
    );
    await runSteps(freeing.steps, this.#ctx);
    return ranges.map((_, p) =>
      refs.flatMap((own, t): CodedChunk[] =>
        values[t].ratings[p] === 0
          ? []
          : [{ rows: values[t].ratings[p], codes: own[p][0], values: own[p][1] }],
      ),
    );
  }
}

interface SplitTask {
  readonly task: Omit<Task, 'outputs'>;
  /** Partitions to free after the task. */
  readonly frees: readonly PartitionRef[];
}

/** Part number of each row. */
function partsOfRows(ranges: readonly RowRange[], rows: number): Partition {
  const partOf = ranges.length > 2 ** 16 ? sharedArray(Uint32Array, rows) : sharedArray(Uint16Array, rows);
  ranges.forEach(({ from, to }, part) => partOf.fill(part, from, to));
  const firstRow = sharedArray(Int32Array, ranges.length + 1);
  firstRow.set([...ranges.map(({ from }) => from), rows]);
  return { layout: 'row-parts', rows, columns: { partOf, firstRow } };
}
