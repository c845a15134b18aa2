import type { RangedFile } from './ranged-file.ts';

/** Bytes `from` .. `to - 1` of a file. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Requests that cover the ranges, in ascending order: ranges with at most `gap` bytes between them share one,
 * since a request takes longer than these bytes.
 */
export function joinRanges(ranges: readonly ByteRange[], gap: number): ByteRange[] {
  const joined: { from: number; to: number }[] = [];
  for (const { from, to } of ranges.filter((one) => one.from < one.to).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last !== undefined && from - last.to <= gap) last.to = Math.max(last.to, to);
    else joined.push({ from, to });
  }
  return joined;
}

/** Reads ranges of a file, in few requests; each result has memory of its own. */
export async function readRanges(
  file: RangedFile,
  ranges: readonly ByteRange[],
  gap: number,
  signal: AbortSignal | undefined,
): Promise<ArrayBuffer[]> {
  const requests = joinRanges(ranges, gap);
  const read = await Promise.all(requests.map(({ from, to }) => file.slice(from, to, signal)));
  return ranges.map(({ from, to }) => {
    if (from === to) return new ArrayBuffer(0);
    const at = requests.findLastIndex((request) => request.from <= from);
    return read[at].slice(from - requests[at].from, to - requests[at].from);
  });
}
