import type { LoadingMemory } from './loading-memory.ts';

/** Ratings that are sorted by band at a time. */
const PIECE = 1 << 18;
/** Ratings that are copied from memory at a time. */
const COPIED = 1 << 15;

/** Codes for numbers: each map translates a code to the number, or to a code of the next map. */
export interface Coded {
  readonly codes: Uint32Array;
  readonly maps: readonly Uint32Array[];
}

/** Writes numbers of the ratings [from, to) to the kernels' memory. */
export type WriteNumbers = (from: number, to: number, address: number) => void;

/**
 * Words of a table from codes to numbers in the kernels' memory; 0 where there are too many codes for the
 * ratings.
 */
export function tableWords({ codes, maps }: Coded): number {
  const words = maps.reduce((sum, { length }) => sum + length, 0);
  return words <= 2 * codes.length ? words : 0;
}

/**
 * Builds the table from codes to numbers at `tableAt`, which has room for `tableWords`, and returns the
 * function that uses it.
 */
export function writerOf(memory: LoadingMemory, coded: Coded, tableAt: number): WriteNumbers {
  const { codes, maps } = coded;
  if (maps.length > 0 && tableWords(coded) === 0)
    return (from, to, address) => gather(codes.subarray(from, to), maps, memory.words(address, to - from));
  let end = tableAt;
  for (const map of maps) {
    memory.words(end, map.length).set(map);
    if (end > tableAt) memory.kernels.lookUp(tableAt, maps[0].length, end);
    end += 4 * map.length;
  }
  return (from, to, address) => {
    memory.words(address, to - from).set(codes.subarray(from, to));
    if (maps.length > 0) memory.kernels.lookUp(address, to - from, tableAt);
  };
}

/** Reads maps that are too large to copy: their entries are far apart, so that reads wait for memory. */
function gather(codes: Uint32Array, [first, second]: readonly Uint32Array[], target: Uint32Array): void {
  for (let k = 0; k < codes.length; k++)
    target[k] = second === undefined ? first[codes[k]] : second[first[codes[k]]];
}

/** Adds the ratings of each band to `counts`. `rows`: their places, see `row-bands` of DataTasks. */
export function countByBand(memory: LoadingMemory, rows: Coded, rowBits: number, counts: Int32Array): void {
  const [placesAt, tableAt, countsAt] = memory.layOut(
    Math.min(COPIED, rows.codes.length),
    tableWords(rows),
    counts.length,
  );
  const write = writerOf(memory, rows, tableAt);
  const own = memory.words(countsAt, counts.length);
  own.set(counts);
  for (let from = 0; from < rows.codes.length; from += COPIED) {
    const to = Math.min(rows.codes.length, from + COPIED);
    write(from, to, placesAt);
    memory.kernels.countBands(placesAt, to - from, rowBits, countsAt);
  }
  counts.set(own);
}

/**
 * Ratings to scatter to bands. `columns`: numbers of columns, and the words they need in the kernels' memory.
 */
export interface Scattered {
  readonly rows: Coded;
  readonly columns: { readonly words: number; writer(address: number): WriteNumbers };
  readonly bits: Uint32Array;
}

export interface BandKeys {
  readonly rowBits: number;
  readonly columnBits: number;
}

/**
 * Scatters ratings to the next indices of their bands, which `cursors` count up. They are sorted by band
 * piece by piece in the core's cache, so that each band's ratings are copied together.
 */
export function scatterByBand(
  memory: LoadingMemory,
  { rows, columns, bits }: Scattered,
  { rowBits, columnBits }: BandKeys,
  cursors: Int32Array,
  target: { readonly keys: Uint32Array; readonly bits: Uint32Array },
): void {
  const [piece, copied] = [Math.min(PIECE, bits.length), Math.min(COPIED, bits.length)];
  const [placesAt, columnsAt, bitsAt, keysAt, sortedAt, endsAt, rowTable, columnTable] = memory.layOut(
    piece,
    copied,
    copied,
    piece,
    piece,
    cursors.length,
    tableWords(rows),
    columns.words,
  );
  const [writeRows, writeColumns] = [writerOf(memory, rows, rowTable), columns.writer(columnTable)];
  const ends = memory.words(endsAt, cursors.length);
  for (let from = 0; from < bits.length; from += PIECE) {
    const count = Math.min(PIECE, bits.length - from);
    ends.fill(0);
    for (let at = 0; at < count; at += COPIED) {
      const some = Math.min(COPIED, count - at);
      writeRows(from + at, from + at + some, placesAt + 4 * at);
      memory.kernels.countBands(placesAt + 4 * at, some, rowBits, endsAt);
    }
    memory.kernels.startsOf(endsAt, ends.length);
    for (let at = 0; at < count; at += COPIED) {
      const some = Math.min(COPIED, count - at);
      writeColumns(from + at, from + at + some, columnsAt);
      memory.words(bitsAt, some).set(bits.subarray(from + at, from + at + some));
      memory.kernels.scatter(
        placesAt + 4 * at,
        columnsAt,
        bitsAt,
        some,
        rowBits,
        columnBits,
        endsAt,
        keysAt,
        sortedAt,
      );
    }
    const [keys, sorted] = [memory.words(keysAt, count), memory.words(sortedAt, count)];
    for (let band = 0, start = 0; band < ends.length; band++) {
      const end = ends[band];
      if (end === start) continue;
      target.keys.set(keys.subarray(start, end), cursors[band]);
      target.bits.set(sorted.subarray(start, end), cursors[band]);
      cursors[band] += end - start;
      start = end;
    }
  }
}
