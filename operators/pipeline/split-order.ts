import type { ByteRange, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';

/** Splits that one task reads, one after the other. */
export type SplitGroup = readonly SourceSplit[];

/**
 * Puts neighbouring splits together up to a number of bytes. A range whose first record is a guess stays by
 * itself.
 */
export function groupSplits(splits: readonly SourceSplit[], targetBytes: number): SplitGroup[] {
  const groups: SourceSplit[][] = [];
  let bytes = 0;
  for (const split of splits) {
    const group = groups.at(-1);
    if (group === undefined || isGuess([split]) || bytes + split.bytes > targetBytes) {
      groups.push([split]);
      bytes = split.bytes;
    } else {
      group.push(split);
      bytes += split.bytes;
    }
  }
  return groups;
}

/** True for a range whose first record is a guess. */
export function isGuess([first]: SplitGroup): boolean {
  return first.range?.known === false;
}

/** Rows and lines of a file before a group, where the group counted them from its own beginning. */
export interface RowsBefore {
  readonly rows: number;
  readonly lines: number;
}

/** A place in a file of records, and the rows and lines before it. */
interface FilePlace extends RowsBefore {
  readonly file: string;
  readonly byte: number;
}

/** The rows and the end of a group of splits, as they were read. */
export interface GroupEnd {
  readonly rows: number;
  readonly end: SplitEnd | null;
}

/** Follows the ranges of files in order, and finds the wrong guesses of a first record. */
export class RangeOrder {
  #reached: FilePlace = { file: '', byte: 0, rows: 0, lines: 0 };

  /**
   * The true range of a group that is one range with a guessed beginning: none where all of its records
   * belong to the range before.
   */
  truth([split]: SplitGroup): ByteRange | undefined {
    const { byte, rows, lines } = this.#reached;
    const range = split.range as ByteRange;
    return byte < range.to ? { from: byte, to: range.to, known: true, rows, lines } : undefined;
  }

  /** True where the group began at the end of the one before. */
  follows({ end }: GroupEnd): boolean {
    return end?.startsAt === this.#reached.byte;
  }

  /** The rows and lines of the file before a group, which it did not know. */
  before(group: SplitGroup): RowsBefore {
    return isGuess(group) ? this.#reached : { rows: 0, lines: 0 };
  }

  /** Continues after a group. */
  pass(group: SplitGroup, { rows, end }: GroupEnd): void {
    const { file, range } = group[group.length - 1];
    if (range === undefined || end === null) return;
    const first = group.length > 1 ? undefined : range.known ? range : this.#reached;
    // A known range counts from the beginning of its file; of several the last is a whole file.
    this.#reached = {
      file,
      byte: end.endsAt,
      rows: (first?.rows ?? 0) + rows,
      lines: (first?.lines ?? 0) + end.lines,
    };
  }
}
