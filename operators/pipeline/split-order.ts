import type { ByteRange, SourceSplit, SplitEnd } from '../../engine/stream/split.ts';

/** Splits that one task reads in order. */
export type SplitGroup = readonly SourceSplit[];

/** Groups neighbouring splits up to a number of bytes. A range with a guessed start stays alone. */
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

/** True for a range with a guessed start. */
export function isGuess([first]: SplitGroup): boolean {
  return first.range?.known === false;
}

/** Rows and lines of a file before a group, if the group counted from its own start. */
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

/** Follows the ranges of files in order, and detects wrongly guessed starts. */
export class RangeOrder {
  #reached: FilePlace = { file: '', byte: 0, rows: 0, lines: 0 };

  /**
   * Checks a group that is one range with a guessed start. Returns the true range; undefined if all its
   * records belong to the previous range.
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

  /** Rows and lines of the file before a group, if the group did not know them. */
  before(group: SplitGroup): RowsBefore {
    return isGuess(group) ? this.#reached : { rows: 0, lines: 0 };
  }

  /** Continues after a group. */
  pass(group: SplitGroup, { rows, end }: GroupEnd): void {
    const { file, range } = group[group.length - 1];
    if (range === undefined || end === null) return;
    const first = group.length > 1 ? undefined : range.known ? range : this.#reached;
    // A range with a known start counts rows from the beginning of its file. The last of several splits is a
    // whole file.
    this.#reached = {
      file,
      byte: end.endsAt,
      rows: (first?.rows ?? 0) + rows,
      lines: (first?.lines ?? 0) + end.lines,
    };
  }
}
