import type { LoadingMemory } from './loading-memory.ts';

/** Ratings that are sorted by band at a time. */
const PIECE = 1 << 18;
/** Ratings that are copied from memory at a time. */
const COPIED = 1 << 15;

/**
 * A sequence of numbers in coded form: `maps` translate a code to its number, one after the other; without
 * maps a code is the number.
 */
export interface Coded {
  readonly codes: Uint32Array;
  readonly maps: readonly Uint32Array[];
}

/**
 * Writes the row numbers, or the column numbers, of the ratings [from, to) to an address of the kernels'
 * memory. They are translated from codes.
 */
export type WriteNumbers = (from: number, to: number, address: number) => void;

/**
 * Words of a table, in the kernels' memory, that translates codes to numbers. 0 if the table would be more
 * than twice as long as the codes, and so would not pay.
 */
export function tableWords({ codes, maps }: Coded): number {
  const words = maps.reduce((sum, { length }) => sum + length, 0);
  return words <= 2 * codes.length ? words : 0;
}

/**
 * Returns the function that translates codes and writes their numbers. If a table pays, first builds it at
 * `tableAt`, which has room for `tableWords`.
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

/** Translates codes with maps that are too large to copy. */
function gather(codes: Uint32Array, [first, second]: readonly Uint32Array[], target: Uint32Array): void {
  for (let k = 0; k < codes.length; k++)
    target[k] = second === undefined ? first[codes[k]] : second[first[codes[k]]];
}

/**
 * Adds the number of ratings of each band to `counts`. `rows`: the places of their rows, see `row-bands` of
 * dataTasks.
 */
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
 * Ratings to distribute to bands. `columns.writer` makes the function that writes their column numbers; the
 * function may use `columns.words` words of the kernels' memory from `address` on. `bits`: the bits of
 * their values.
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
 * Writes ratings to the next free indices of their bands; `cursors` has these indices and is advanced. In the
 * core's cache a piece of the ratings is first sorted by band, so that each band's ratings of the piece are
 * copied to the block together.
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
