import { UsageError } from '../../engine/errors.ts';
import { sharedArray } from '../../engine/partition.ts';
import { TopNRows } from '../generated/structs.ts';
import {
  type BlockArrays,
  blockOf,
  type MatrixView,
  type TaskHandler,
  type TaskScope,
  valuesOf,
} from '../handler.ts';
import { Struct } from '../scratch.ts';

/**
 * Most rows that share one pass over the columns, and the number of columns in a tile, for which a kernel is
 * called once.
 */
const GROUP_ROWS = 512;
const TILE_COLUMNS = 1_024;
const MASK_BYTES = (TILE_COLUMNS / 8) * GROUP_ROWS;

/** Bytes of scratch for the lists of a group's rows; the rest holds panels, thresholds and the mask. */
const LIST_BYTES = 4 << 20;
const LARGEST_N = LIST_BYTES / 8;

export const topN: TaskHandler<'top-n'> = (scope) => {
  const { from, to, rank, n, rowStart = 0 } = scope.params;
  if (n > LARGEST_N)
    throw new UsageError(`n is ${n}, but a list holds at most ${LARGEST_N} columns`, { phase: 'top-n' });
  const groupRows = Math.max(1, Math.min(GROUP_ROWS, Math.floor(LARGEST_N / n)));
  const items = sharedArray(Uint32Array, (to - from) * n);
  const scores = sharedArray(Float32Array, (to - from) * n);
  const rowFactors = scope.matrix('rowFactors');
  const columnFactors = scope.matrix('columnFactors');
  const order = valuesOf<Uint32Array>(scope, 'order');
  const bounds = valuesOf(scope, 'bounds');
  const exclusion = scope.hasInput('exclude')
    ? new Exclusion(blockOf(scope, 'exclude'), columnFactors.rows, order)
    : undefined;
  const at = layout(scope, rank, groupRows, n);
  const search: Search = { scope, at, rank, n, rowFactors, columnFactors, order, bounds, exclusion };
  let offered = 0;
  for (let row = from; row < to && !scope.cancelled(); row += groupRows) {
    const rows = Math.min(groupRows, to - row);
    exclusion?.begin(rowStart + row, rows);
    offerAll(search, row, rows);
    scores.set(new Float32Array(scope.memory.buffer, at.scores, rows * n), (row - from) * n);
    items.set(new Uint32Array(scope.memory.buffer, at.items, rows * n), (row - from) * n);
    offered += rows;
  }
  return {
    rows: offered,
    bytesUp: exclusion?.bytes ?? 0,
    bytesDown: 8 * n * offered,
    partitions: { top: { layout: 'top-n', rows: to - from, columns: { items, scores } } },
  };
};

type Layout = ReturnType<typeof layout>;

function layout(scope: TaskScope, rank: number, groupRows: number, n: number) {
  const scores = scope.scratch;
  const items = scores + 4 * groupRows * n;
  const mask = scope.scratch + LIST_BYTES;
  const thresholds = mask + MASK_BYTES;
  const rowNorms = thresholds + 4 * GROUP_ROWS;
  const bounds = rowNorms + 4 * GROUP_ROWS;
  const order = bounds + TILE_COLUMNS / 2;
  const group = order + 4 * TILE_COLUMNS;
  const work = group + TopNRows.bytes;
  const rowPanels = work + 32 * rank + 128;
  return { scores, items, mask, thresholds, rowNorms, bounds, order, group, work, rowPanels };
}

interface Search {
  readonly scope: TaskScope;
  readonly at: Layout;
  readonly rank: number;
  readonly n: number;
  readonly rowFactors: MatrixView;
  readonly columnFactors: MatrixView;
  readonly order: Uint32Array | undefined;
  readonly bounds: Float32Array | undefined;
  readonly exclusion: Exclusion | undefined;
}

/** Finds the best columns for one group of rows: passes all columns, tile by tile, to the kernel. */
function offerAll(search: Search, row: number, rows: number): void {
  const { scope, at, rank, n, rowFactors, columnFactors } = search;
  const { kernels } = scope;
  const size = rowFactors.stride * 4;
  const { rowPanels, thresholds, rowNorms, scores, items, work } = at;
  const group = { size, rank, rows, n, rowPanels, thresholds, rowNorms, scores, items, work };
  const { address } = new Struct(scope.memory, at.group, TopNRows).set(group);
  kernels.beginTopN(address, rowFactors.pointer + row * size);
  for (let first = 0; first < columnFactors.rows && !scope.cancelled(); first += TILE_COLUMNS) {
    const columns = Math.min(TILE_COLUMNS, columnFactors.rows - first);
    const { mask, bounds, order } = placeTile(search, first, columns);
    kernels.offerColumns(address, columnFactors.pointer + first * size, first, columns, mask, bounds, order);
  }
  kernels.finishTopN(address);
}

/**
 * Copies the bounds, items and exclusions of a tile's columns into scratch. Returns their addresses; 0 for
 * those that the task does not have.
 */
function placeTile(
  { scope, at, exclusion, bounds, order }: Search,
  first: number,
  columns: number,
): { readonly mask: number; readonly bounds: number; readonly order: number } {
  const { buffer } = scope.memory;
  exclusion?.fill(new Uint8Array(buffer, at.mask, MASK_BYTES), first / TILE_COLUMNS);
  if (bounds)
    new Float32Array(buffer, at.bounds, TILE_COLUMNS / 8).set(
      bounds.subarray(first / 8, (first + TILE_COLUMNS) / 8),
    );
  if (order) new Uint32Array(buffer, at.order, TILE_COLUMNS).set(order.subarray(first, first + columns));
  return { mask: exclusion ? at.mask : 0, bounds: bounds ? at.bounds : 0, order: order ? at.order : 0 };
}

/**
 * The excluded columns of a group's rows, sorted by tile. An entry combines the column's number in its tile
 * with the row's number in the group.
 */
class Exclusion {
  readonly #offsets: Int32Array;
  readonly #indices: Uint32Array;
  /** The column of each item number in the exclusions; undefined if exclusions contain columns themselves. */
  readonly #columnOf: Uint32Array | undefined;
  /** The entries of tile t start at #starts[t]. */
  readonly #starts: Uint32Array;
  #entries = new Uint32Array(0);
  #rows = 0;
  /** Bytes read so far. */
  bytes = 0;

  constructor(block: BlockArrays, columns: number, order: Uint32Array | undefined) {
    [this.#offsets, this.#indices] = [block.offsets, block.indices];
    this.#columnOf = order && new Uint32Array(columns);
    order?.forEach((number, column) => ((this.#columnOf as Uint32Array)[number] = column));
    this.#starts = new Uint32Array(Math.ceil(columns / TILE_COLUMNS) + 2);
  }

  begin(row: number, rows: number): void {
    const [offsets, indices, columnOf, starts] = [this.#offsets, this.#indices, this.#columnOf, this.#starts];
    const [first, end] = [offsets[row], offsets[row + rows]];
    if (this.#entries.length < end - first) this.#entries = new Uint32Array(2 * (end - first));
    // A counting sort in one array. The number of tile t's entries is counted at t + 2, so after summation
    // the start of tile t is at t + 1. Placing entries advances it to the tile's end, which is the start of
    // tile t + 1.
    starts.fill(0);
    for (let k = first; k < end; k++)
      starts[Math.floor((columnOf ? columnOf[indices[k]] : indices[k]) / TILE_COLUMNS) + 2]++;
    for (let tile = 2; tile < starts.length; tile++) starts[tile] += starts[tile - 1];
    for (let r = 0, k = first; r < rows; r++) {
      for (; k < offsets[row + r + 1]; k++) {
        const column = columnOf ? columnOf[indices[k]] : indices[k];
        this.#entries[starts[Math.floor(column / TILE_COLUMNS) + 1]++] =
          (column % TILE_COLUMNS) * GROUP_ROWS + r;
      }
    }
    this.#rows = rows;
    this.bytes += 4 * (end - first);
  }

  /** Sets bit (column % 8) of mask[column / 8][row] for the excluded columns of a tile. */
  fill(mask: Uint8Array, tile: number): void {
    mask.fill(0);
    for (let at = this.#starts[tile]; at < this.#starts[tile + 1]; at++) {
      const entry = this.#entries[at];
      const column = Math.floor(entry / GROUP_ROWS);
      mask[(column >> 3) * this.#rows + (entry % GROUP_ROWS)] |= 1 << (column & 7);
    }
  }
}
