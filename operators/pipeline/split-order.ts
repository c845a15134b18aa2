import type { ByteRange, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';

/** Splits that one task reads in order. */
export type SplitGroup = readonly SourceSplit[];

/**
 * Puts neighbouring splits into groups of at most `targetBytes`, one group for each task; a larger split is a
 * group of its own. So is every range of a text file: it may have to be read again if its start was a guess,
 * and its rows and lines count for the range after it.
 */
export function groupSplits(splits: readonly SourceSplit[], targetBytes: number): SplitGroup[] {
  const groups: SourceSplit[][] = [];
  let bytes = 0;
  let alone = true;
  for (const split of splits) {
    const isRange = split.range !== undefined;
    if (alone || isRange || bytes + split.bytes > targetBytes) {
      groups.push([split]);
      bytes = split.bytes;
    } else {
      groups[groups.length - 1].push(split);
      bytes += split.bytes;
    }
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
export class RangeOrder {
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
