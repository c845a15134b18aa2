import { sharedArray } from '../../engine/partition.ts';
import { ListedRows } from '../generated/structs.ts';
import { blockOf, SCRATCH_BYTES, type ScopeOf, type TaskHandler, valuesOf } from '../handler.ts';
import { ScratchAddresses, Struct } from '../scratch.ts';

/** Most rows in a group; the rows of a group share one pass over the columns. */
const GROUP_ROWS = 512;
/** Most listed columns of all rows of a group together. */
const GROUP_LISTED = 65_536;
/** Columns of one kernel call. */
const TILE_COLUMNS = 256;
/** Factor of bounds that covers the rounding errors of a float32 product of 4,096 terms. */
const ROUNDING = 1 + 3e-4;
/**
 * Rows whose listed columns all have their ranks take room in the panels. The others are packed again when
 * they are less than this fraction of the packed rows.
 */
const REPACKED = 0.8;
/** Columns that are scored one by one in a call. */
const CHUNK = 16_384;

/**
 * Listed columns of one row: entries [from, to) of the block `listed`. A row that has too many of them for
 * one group is in several groups.
 */
interface Entry {
  readonly row: number;
  readonly from: number;
  readonly to: number;
}

export const rankListed: TaskHandler<'rank-listed'> = (scope) => {
  const { from, to } = scope.params;
  const { offsets, indices } = blockOf(scope, 'listed');
  const whole = valuesOf(scope, 'places');
  const count = offsets[to] - offsets[from];
  const places = whole
    ? new Uint32Array(whole.buffer, whole.byteOffset + 8 * offsets[from], 2 * count)
    : sharedArray(Uint32Array, 2 * count);
  const ranking = new Ranking(scope);
  let bytesUp = 0;
  for (const entries of groups(offsets, from, to)) {
    if (scope.cancelled()) break;
    ranking.list(entries, indices);
    bytesUp += ranking.discountExcluded();
    ranking.countAll();
    ranking.write(indices, places, offsets[from]);
  }
  return {
    rows: to - from,
    bytesUp,
    bytesDown: places.byteLength,
    ...(whole
      ? {}
      : { partitions: { places: { layout: 'places', rows: count, columns: { values: places } } } }),
  };
};

function* groups(offsets: Int32Array, from: number, to: number): Generator<readonly Entry[]> {
  let group: Entry[] = [];
  let listed = 0;
  for (let row = from; row < to; row++) {
    for (let first = offsets[row]; first < offsets[row + 1];) {
      const end = Math.min(offsets[row + 1], first + GROUP_LISTED);
      if (group.length === GROUP_ROWS || listed + end - first > GROUP_LISTED) {
        yield group;
        [group, listed] = [[], 0];
      }
      group.push({ row, from: first, to: end });
      listed += end - first;
      first = end;
    }
  }
  if (group.length > 0) yield group;
}

/** The lists of one group of rows in scratch memory; see cpu/assembly/rank-listed.ts. */
class Ranking {
  readonly #scope: ScopeOf<'rank-listed'>;
  readonly #rows;
  readonly #columns;
  readonly #at;
  readonly #group: number;
  #entries: readonly Entry[] = [];

  constructor(scope: ScopeOf<'rank-listed'>) {
    this.#scope = scope;
    this.#rows = scope.matrix('rowFactors');
    this.#columns = scope.matrix('columnFactors');
    const addresses = new ScratchAddresses(scope.scratch);
    const { take } = addresses;
    const { rank } = scope.params;
    this.#group = take(ListedRows.bytes);
    this.#at = {
      scores: take(4 * GROUP_LISTED),
      listed: take(4 * GROUP_LISTED),
      counts: take(16 * GROUP_LISTED),
      ties: take(4 * GROUP_LISTED),
      starts: take(4 * GROUP_ROWS),
      ends: take(4 * GROUP_ROWS),
      lows: take(4 * GROUP_ROWS),
      norms: take(4 * GROUP_ROWS),
      bounds: take(TILE_COLUMNS / 2),
      newColumns: take(4 * CHUNK),
      newScores: take(4 * CHUNK + 32),
      work: take(32 * rank + 128),
      rowPanels: take(4 * rank * GROUP_ROWS),
    };
    if (addresses.bytes > SCRATCH_BYTES)
      throw new Error('the scratch memory is too small for a group of rows');
    new Struct(scope.memory, this.#group, ListedRows).set({
      ...this.#at,
      size: 4 * this.#columns.stride,
      rank,
    });
  }

  /** Lists the columns of the entries, best first. */
  list(entries: readonly Entry[], indices: Uint32Array): void {
    const { kernels } = this.#scope;
    const { starts, ends } = this.#slots();
    let start = 0;
    entries.forEach(({ row, from, to }, e) => {
      const n = to - from;
      kernels.beginList(this.#group, start, n);
      this.#score(row, indices, from, to, (count) => kernels.enterListed(this.#group, start, n, count));
      kernels.finishList(this.#group, start, n);
      starts[e] = start;
      ends[e] = start += n;
    });
    this.#entries = entries;
  }

  /**
   * Counts the columns with a higher score than each listed column, and its ties. A listed column stops counting at `depth`; rows
   * whose listed columns have all stopped are skipped.
   */
  countAll(): void {
    const { kernels, params } = this.#scope;
    const { depth = 2 ** 31 - 1 } = params;
    const { pointer, rows, stride } = this.#columns;
    let packed = this.#pack(this.#entries);
    for (let first = 0; first < rows && !this.#scope.cancelled(); first += TILE_COLUMNS) {
      const left = kernels.shortenLists(this.#group, packed.length, depth);
      if (left === 0) return;
      if (left < REPACKED * packed.length) {
        packed = this.#pack(packed);
        kernels.shortenLists(this.#group, packed.length, depth);
      }
      const columns = Math.min(TILE_COLUMNS, rows - first);
      const factors = pointer + 4 * stride * first;
      kernels.boundColumns(this.#group, factors, columns, ROUNDING);
      kernels.countColumns(this.#group, packed.length, factors, columns);
    }
  }

  /**
   * Packs the rows that still have listed columns into the panels, and moves their starts and ends to the
   * front. Returns their entries.
   */
  #pack(entries: readonly Entry[]): readonly Entry[] {
    const { kernels } = this.#scope;
    const { starts, ends, lows } = this.#slots();
    const left = entries.filter((_, e) => ends[e] > starts[e]);
    const kept = entries.flatMap((_, e) => (ends[e] > starts[e] ? [e] : []));
    left.forEach(({ row }, e) => {
      [starts[e], ends[e]] = [starts[kept[e]], ends[kept[e]]];
      kernels.packRow(this.#group, this.#rowAt(row), e);
    });
    for (let e = left.length; e % 4 !== 0; e++) kernels.packRow(this.#group, 0, e);
    lows.fill(Infinity, left.length);
    return left;
  }

  #slots() {
    const { memory } = this.#scope;
    const { starts, ends, lows } = this.#at;
    return {
      starts: new Int32Array(memory.buffer, starts, GROUP_ROWS),
      ends: new Int32Array(memory.buffer, ends, GROUP_ROWS),
      lows: new Float32Array(memory.buffer, lows, GROUP_ROWS),
    };
  }

  /** Subtracts the excluded columns from counts and ties. Returns the bytes read. */
  discountExcluded(): number {
    const { kernels } = this.#scope;
    if (!this.#scope.hasInput('exclude')) return 0;
    const { offsets, indices } = blockOf(this.#scope, 'exclude');
    const { starts, ends } = this.#slots();
    let bytes = 0;
    this.#entries.forEach(({ row }, e) => {
      const [from, to] = [offsets[row], offsets[row + 1]];
      bytes += 4 * (to - from);
      this.#score(row, indices, from, to, (count) =>
        kernels.discountListed(this.#group, count, starts[e], ends[e]),
      );
    });
    return bytes;
  }

  /** Writes ranks and ties to `places`, whose first two numbers belong to entry `first` of the block. */
  write(indices: Uint32Array, places: Uint32Array, first: number): void {
    const { memory } = this.#scope;
    const listed = new Uint32Array(memory.buffer, this.#at.listed, GROUP_LISTED);
    const counts = new Int32Array(memory.buffer, this.#at.counts, 4 * GROUP_LISTED);
    const ties = new Int32Array(memory.buffer, this.#at.ties, GROUP_LISTED);
    let k = 0;
    for (const { from, to } of this.#entries) {
      for (const end = k + to - from; k < end; k++) {
        const at = 2 * (placeOf(indices, from, to, listed[k]) - first);
        places[at] = counts[4 * k] + counts[4 * k + 1] + counts[4 * k + 2] + counts[4 * k + 3];
        places[at + 1] = ties[k];
      }
    }
  }

  /**
   * Computes the scores of a row's distinct columns in entries [from, to) of a block, as new columns, and
   * calls `use` with their number, in chunks.
   */
  #score(row: number, indices: Uint32Array, from: number, to: number, use: (count: number) => void): void {
    const { kernels, memory } = this.#scope;
    const chunk = new Uint32Array(memory.buffer, this.#at.newColumns, CHUNK);
    for (let next = from; next < to;) {
      let count = 0;
      for (; next < to && count < CHUNK; next++)
        if (next === from || indices[next] !== indices[next - 1]) chunk[count++] = indices[next];
      kernels.scoreListed(this.#group, this.#rowAt(row), this.#columns.pointer, count);
      use(count);
    }
  }

  #rowAt(row: number): number {
    return this.#rows.pointer + 4 * this.#rows.stride * row;
  }
}

/** Finds the index of a column among the entries [from, to), whose columns ascend. */
function placeOf(indices: Uint32Array, from: number, to: number, column: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (indices[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}
