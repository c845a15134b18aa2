import { type Schema, Table, tableToIPC } from 'apache-arrow';
import { CapacityError, DeviceLostError, FactorFlowError, throwIfAborted } from '../../engine/errors.ts';
import { type Partition, sharedCopy } from '../../engine/partition.ts';
import { type ExecutionContext, onSpeculation } from '../../engine/run/context.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import type { ByteRange, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';

/** Splits that one task reads in order. */
export type SplitGroup = readonly SourceSplit[];

/**
 * Puts neighbouring splits into groups of at most `targetBytes` and `targetRows`, one group for each task; a
 * larger split is a group of its own. So is every range of a text file: it may have to be read again if its start was a guess,
 * and its rows and lines count for the range after it.
 */
export function groupSplits(
  splits: readonly SourceSplit[],
  targetBytes: number,
  targetRows = Number.POSITIVE_INFINITY,
): SplitGroup[] {
  const groups: SourceSplit[][] = [];
  let [bytes, rows] = [0, 0];
  let alone = true;
  for (const split of splits) {
    const isRange = split.range !== undefined;
    bytes += split.bytes;
    rows += split.rows ?? 0;
    if (alone || isRange || bytes > targetBytes || rows > targetRows) {
      groups.push([split]);
      [bytes, rows] = [split.bytes, split.rows ?? 0];
    } else groups[groups.length - 1].push(split);
    alone = isRange;
  }
  return groups;
}

/**
 * True for a range of text whose start is a guess: it may be inside a record, which shows only when the range
 * before it has been read.
 */
export function isGuess([first]: SplitGroup): boolean {
  return first.range?.known === false;
}

/**
 * Number of rows and lines of the file before a group that counted from its own start. Added to the group's
 * numbers in origins and errors.
 */
export interface RowsBefore {
  readonly rows: number;
  readonly lines: number;
}

/** A position in a file of records, and the rows and lines before it. */
interface FilePlace extends RowsBefore {
  readonly file: string;
  readonly byte: number;
}

/** Rows and end of a group of splits, known after reading it. */
export interface GroupEnd {
  readonly rows: number;
  readonly end: SplitEnd | null;
}

/**
 * Follows the ranges of each file in order and checks that each starts where the previous one ended. A
 * guessed start may be wrong.
 */
class RangeOrder {
  #reached: FilePlace = { file: '', byte: 0, rows: 0, lines: 0 };

  /**
   * The range that a group with a wrongly guessed start should have read: from the end of the previous range.
   * Undefined if the previous range has read all its records.
   */
  truth([split]: SplitGroup): ByteRange | undefined {
    const { byte, rows, lines } = this.#reached;
    const range = split.range as ByteRange;
    return byte < range.to ? { from: byte, to: range.to, known: true, rows, lines } : undefined;
  }

  /** True if the group starts at the position at which the previous group ended. */
  follows({ end }: GroupEnd): boolean {
    return end?.startsAt === this.#reached.byte;
  }

  /**
   * Rows and lines of the file before a group. Zero if the group knows its place and has counted from the
   * start of its file.
   */
  before(group: SplitGroup): RowsBefore {
    return isGuess(group) ? this.#reached : { rows: 0, lines: 0 };
  }

  /** Continues after a group. */
  pass([{ file, range }]: SplitGroup, { rows, end }: GroupEnd): void {
    if (range === undefined || end === null) return;
    // A range with a known start has the rows and lines of its file before it; a guessed one continues at the
    // place reached.
    const first = range.known ? range : this.#reached;
    this.#reached = {
      file,
      byte: end.endsAt,
      rows: (first.rows ?? 0) + rows,
      lines: (first.lines ?? 0) + end.lines,
    };
  }
}

/** The work of a pipeline on the splits of a source. */
interface SplitWork<Read extends GroupEnd> {
  readonly groups: readonly SplitGroup[];
  /** Most groups in progress, or read and waiting. */
  readonly atOnce: number;
  /**
   * Reads a group with a task of `ctx`. If its start was guessed wrongly, it is called again with the true
   * range; `first` is then the original group.
   */
  read(group: SplitGroup, ctx: ExecutionContext, first: SplitGroup): Promise<Read>;
  /** Frees the result of a wrong guess. */
  drop?(read: Read): Promise<void>;
}

/** A group, after wrong guesses were corrected. */
interface ReadGroup<Read> {
  readonly splits: SplitGroup;
  readonly read: Read;
  /** Rows and lines of the first split's file before the group; they are added to the group's own counts. */
  readonly before: RowsBefore;
}

/**
 * Reads groups of splits with tasks, a limited number at a time, and yields the results in the order of
 * rows. A range whose start was guessed wrongly is read again. The consumer must set `rows` and `end` of a
 * result before it pulls the next one. The first failure cancels the running tasks; so does leaving the loop
 * early.
 */
export async function* readSplits<Read extends GroupEnd>(
  work: SplitWork<Read>,
  ctx: ExecutionContext,
): AsyncGenerator<ReadGroup<Read>, void> {
  const stop = new AbortController();
  const tasks: ExecutionContext = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) };
  const order = new RangeOrder();
  let failed = false;
  const readGroup = (group: SplitGroup, first = group): Promise<Read> =>
    work.read(group, isGuess(group) ? onSpeculation(tasks) : tasks, first).catch((error: unknown) => {
      throw threadProblem(error, group[0].file);
    });
  const attempt = async (group: SplitGroup): Promise<Attempt<Read>> => {
    if (failed) return { group };
    try {
      return { group, read: await readGroup(group) };
    } catch (error) {
      if (!isGuess(group)) failed = true;
      return { group, error };
    }
  };
  const settled = async ({ group, read, error }: Attempt<Read>): Promise<Settled<Read> | undefined> => {
    if (read !== undefined && (!isGuess(group) || order.follows(read))) return { splits: group, read };
    if (!isGuess(group)) throw error;
    if (read !== undefined) await work.drop?.(read);
    const range = order.truth(group);
    if (range === undefined) return undefined;
    const splits = [{ ...group[0], range }];
    return { splits, read: await readGroup(splits, group) };
  };
  for await (const outcome of mapOrdered(eachOf(work.groups), work.atOnce, attempt)) {
    let isTaken = false;
    try {
      throwIfAborted(ctx.signal, 'read');
      const group = await settled(outcome);
      if (group !== undefined) {
        yield { ...group, before: order.before(group.splits) };
        order.pass(group.splits, group.read);
      }
      isTaken = true;
    } finally {
      // Cancels the tasks if the loop ends early; mapOrdered then waits until they have ended.
      if (!isTaken) stop.abort();
    }
  }
}

/** The outcome of reading a group: the result, or the error, or neither after an earlier failure. */
interface Attempt<Read> {
  readonly group: SplitGroup;
  readonly read?: Read;
  readonly error?: unknown;
}

type Settled<Read> = Omit<ReadGroup<Read>, 'before'>;

/** Adds the file's name to the error of a thread that failed while it read that file. */
function threadProblem(error: unknown, file: string): unknown {
  if (error instanceof DeviceLostError)
    return new DeviceLostError(error.summary, { ...error.details, phase: 'read', file });
  if (error instanceof FactorFlowError || !(error instanceof Error)) return error;
  if ('code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new CapacityError('a thread ran out of memory', {
      phase: 'read',
      file,
      advice: 'Use fewer workers, or smaller row groups and files',
      cause: error,
    });
  }
  return new Error(`read: a thread failed: ${error.message} (${file})`, { cause: error });
}

/** The columns as an Arrow stream without rows. */
export function schemaPartition(schema: Schema): Partition {
  const bytes = sharedCopy(tableToIPC(new Table(schema)));
  return { layout: 'schema', rows: schema.fields.length, columns: { bytes } };
}

export async function* eachOf<T>(elements: readonly T[]): AsyncGenerator<T> {
  yield* elements;
}
