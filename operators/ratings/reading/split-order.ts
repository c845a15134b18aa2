import type { ByteRange, SourceSplit, SplitEnd } from '../../../engine/stream/split.ts';
import type { BadRows } from '../rows/bad-rows.ts';

/**
 * Puts neighbouring splits together up to a number of bytes. A range whose first record is a guess stays by
 * itself.
 */
export function groupSplits(splits: readonly SourceSplit[], targetBytes: number): (readonly SourceSplit[])[] {
  const groups: SourceSplit[][] = [];
  let bytes = 0;
  for (const split of splits) {
    const group = groups.at(-1);
    if (group === undefined || split.range?.known === false || bytes + split.bytes > targetBytes) {
      groups.push([split]);
      bytes = split.bytes;
    } else {
      group.push(split);
      bytes += split.bytes;
    }
  }
  return groups;
}

/** A place in a file of records, and the rows and lines before it. */
interface FilePlace {
  readonly file: string;
  readonly byte: number;
  readonly rows: number;
  readonly lines: number;
}

/** The rows and the end of a group of splits, as they were read. */
interface ReadGroup {
  readonly rows: number;
  readonly end: SplitEnd | null;
  readonly bad: BadRows;
}

/** Follows the ranges of files in order, and tells those whose first record was guessed wrong. */
export class RangeOrder {
  #reached: FilePlace = { file: '', byte: 0, rows: 0, lines: 0 };

  /**
   * The true range of a group that is one range with a guessed beginning: none where all of its records
   * belong to the range before.
   */
  truth([split]: readonly SourceSplit[]): ByteRange | undefined {
    const { byte, rows, lines } = this.#reached;
    const range = split.range as ByteRange;
    return byte < range.to ? { from: byte, to: range.to, known: true, rows, lines } : undefined;
  }

  /** True where the group began at the end of the one before. */
  follows({ end }: ReadGroup): boolean {
    return end?.startsAt === this.#reached.byte;
  }

  /** Goes on behind a group; gives its bad rows at their places in the file. */
  pass(group: readonly SourceSplit[], { rows, end, bad }: ReadGroup): BadRows {
    const { file, range } = group[group.length - 1];
    if (range === undefined || end === null) return bad;
    const first = group.length > 1 ? undefined : range.known ? range : this.#reached;
    // A known range counts from the beginning of its file; of several the last is a whole file.
    this.#reached = {
      file,
      byte: end.endsAt,
      rows: (first?.rows ?? 0) + rows,
      lines: (first?.lines ?? 0) + end.lines,
    };
    return range.known || first === undefined ? bad : movedBy(bad, first.rows, first.lines);
  }
}

function movedBy({ count, first }: BadRows, rows: number, lines: number): BadRows {
  if (first?.place === undefined) return { count, first };
  const { place } = first;
  return {
    count,
    first: {
      ...first,
      place: {
        ...place,
        ...(place.row !== undefined && { row: place.row + rows }),
        ...(place.line !== undefined && { line: place.line + lines }),
      },
    },
  };
}
