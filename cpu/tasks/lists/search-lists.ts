import { UsageError } from '../../../engine/errors.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { ListSearch } from '../../../operators/tasks/tasks.ts';
import { Scan, Search } from '../../generated/structs.ts';
import {
  blockOf,
  type MatrixView,
  STRIDE_STEP,
  type TaskScope,
  SCRATCH_BYTES,
  type TaskHandler,
  valuesOf,
} from '../../handler.ts';
import { ScratchAddresses, Struct } from '../../scratch.ts';
import { roundings, roundQuery } from '../search/search.ts';
import { vectorReader, rotation } from './list-vectors.ts';

export const rankLists: TaskHandler<'rank-lists'> = (scope) => {
  const lists = searcherOf(scope).rank(scope.params.query, scope.params.probes);
  return { rows: lists.length, values: { lists } };
};

export const listCandidates: TaskHandler<'list-candidates'> = (scope) => {
  const searcher = searcherOf(scope);
  const columns = searcher.candidates(scope.params.query, scope.params.left);
  return { rows: searcher.scanned, values: { columns } };
};

export const searchLists: TaskHandler<'search-lists'> = (scope) => {
  const searcher = searcherOf(scope);
  const found: { readonly items: readonly number[]; readonly scores: readonly number[] }[] = [];
  for (const { query, left, allowed } of scope.params.searches) {
    if (scope.cancelled()) break;
    const { items, scores, count } = searcher.search(query, left, allowed);
    found.push({
      items: Array.from(items.subarray(0, count)),
      scores: Array.from(scores.subarray(0, count)),
    });
  }
  return { rows: searcher.scanned, values: { found } };
};

export const topNInLists: TaskHandler<'top-n-in-lists'> = (scope) => {
  const { from, to, rank, n } = scope.params;
  const searcher = searcherOf(scope);
  const queries = scope.partition('queries').columns.values as Float32Array;
  const exclude = scope.hasInput('exclude') ? blockOf(scope, 'exclude') : undefined;
  const items = sharedArray(Uint32Array, (to - from) * n);
  const scores = sharedArray(Float32Array, (to - from) * n);
  for (let row = from; row < to && !scope.cancelled(); row++) {
    const left = exclude?.indices.subarray(exclude.offsets[row], exclude.offsets[row + 1]) ?? [];
    const found = searcher.search(queries.subarray(row * rank, (row + 1) * rank), left);
    items.set(found.items, (row - from) * n);
    scores.set(found.scores, (row - from) * n);
  }
  return {
    rows: to - from,
    bytesDown: 8 * n * (to - from),
    partitions: { top: { layout: 'top-n', rows: to - from, columns: { items, scores } } },
  };
};

function searcherOf(scope: TaskScope<ListSearch>): ListSearcher {
  const values = (name: string) => scope.partition(name).columns.values;
  return new ListSearcher(scope, {
    centers: scope.matrix('centerRows'),
    radii: scope.matrix('radii'),
    coarse: scope.matrix('coarse'),
    guide: scope.matrix('columnGuide'),
    signs: scope.matrix('signs'),
    starts: values('starts') as Uint32Array,
    vectors: values('vectors') as Float32Array,
    mask: valuesOf<Uint8Array>(scope, 'mask'),
  });
}

/** Candidates that are kept before their exact scores are computed. */
const MOST_CANDIDATES = 32_768;

/** Columns of a list whose masks are gathered at a time. */
export const MASKED_COLUMNS = 4096;

/** Rows of θ copied at a time. */
const ROWS = 256;

/** Addresses of a search's arrays in scratch. Throws UsageError if they do not fit. */
function listScratch(scope: TaskScope<ListSearch>, rowStride: number, lists: number) {
  const { n, rank } = scope.params;
  const addresses = new ScratchAddresses(scope.scratch);
  const { take } = addresses;
  const at = {
    query: take(4 * rowStride),
    coarse: take(2 * 16 * Math.ceil(rank / 16)),
    table: take(64 * Math.ceil(rank / 16)),
    bound: take(24),
    scan: take(Scan.bytes),
    search: take(Search.bytes),
    starts: take(4 * (lists + 1)),
    scores: take(4 * n),
    items: take(4 * n),
    lows: take(4 * n),
    lowColumns: take(4 * n),
    ranks: take(4 * lists),
    numbers: take(4 * lists),
    found: take(8 * MOST_CANDIDATES),
    rows: take(4 * ROWS * rowStride),
    rowItems: take(4 * ROWS),
    mask: take(MASKED_COLUMNS),
  };
  const left = SCRATCH_BYTES - addresses.bytes;
  if (left < 4 * 1024)
    throw new UsageError(`a list of ${n} items does not fit into the memory of a search`, {
      phase: 'search',
      advice: 'Search without the index',
    });
  return { ...at, left: addresses.end, mostLeft: Math.floor(left / 4) };
}

/**
 * Lists are probed in the order of xᵀc + REACH ‖x‖ radius: a list with a large radius may have a column far
 * above its center. The bound of a list would be at 1, which prefers large lists too much.
 */
const REACH = 0.3;

interface SearchedParts {
  readonly centers: MatrixView;
  readonly radii: MatrixView;
  readonly coarse: MatrixView;
  readonly guide: MatrixView;
  readonly signs: MatrixView;
  readonly starts: Uint32Array;
  /** Not needed for `candidates`. */
  readonly vectors: Float32Array;
  readonly mask: Uint8Array | undefined;
}

interface FoundList {
  /** n entries each; the first `count` are found, best first. Views, valid until the next search. */
  readonly items: Uint32Array;
  readonly scores: Float32Array;
  readonly count: number;
}

/** Searches lists for one query after the other, in the memory of one task. */
class ListSearcher {
  readonly #scope: TaskScope<ListSearch>;
  readonly #parts: SearchedParts;
  readonly #read: ReturnType<typeof vectorReader>;
  readonly #at: ReturnType<typeof listScratch>;
  readonly #lists: number;
  readonly #rowStride: number;
  readonly #query: ListQuery;
  /** Collects columns in place of their exact scores. */
  #candidates: number[] | undefined;
  /** Columns whose bounds were computed, or that were in lists which could not have one of the best. */
  scanned = 0;

  constructor(scope: TaskScope<ListSearch>, parts: SearchedParts) {
    const { params, memory } = scope;
    [this.#scope, this.#parts] = [scope, parts];
    this.#lists = parts.starts.length - 1;
    this.#read = vectorReader(parts.vectors, params);
    this.#rowStride = STRIDE_STEP * Math.ceil(params.rank / STRIDE_STEP);
    this.#at = listScratch(scope, this.#rowStride, this.#lists);
    this.#query = new ListQuery(scope, this.#at, parts.centers, this.#lists);
    new Uint32Array(memory.buffer, this.#at.starts, this.#lists + 1).set(parts.starts);
  }

  /** `left`: items to leave out, ascending. `allowed`: the only items to compare. */
  search(query: ArrayLike<number>, left: ArrayLike<number>, allowed?: readonly number[]): FoundList {
    const { memory, kernels, params } = this.#scope;
    const { n } = params;
    const at = this.#at;
    this.#queryIn(query);
    kernels.clearHeap(at.scores, at.items, n);
    if (allowed === undefined) this.#searchLists(left);
    else this.#searchChosen(allowed, left);
    kernels.sortHeap(at.scores, at.items, n);
    const items = new Uint32Array(memory.buffer, at.items, n);
    const scores = new Float32Array(memory.buffer, at.scores, n);
    // Empty entries are last.
    let count = n;
    while (count > 0 && Number.isNaN(scores[count - 1])) count--;
    return { items, scores, count };
  }

  /** The columns whose exact scores `search` would compute, ascending. */
  candidates(query: ArrayLike<number>, left: ArrayLike<number>): number[] {
    const found: number[] = [];
    this.#candidates = found;
    this.#queryIn(query);
    this.#searchLists(left);
    this.#candidates = undefined;
    return found.sort((one, other) => one - other);
  }

  /** The first `count` lists, in the order in which they are probed for a query. */
  rank(query: ArrayLike<number>, count: number): number[] {
    const ranked = Math.min(count, this.#lists);
    this.#queryIn(query);
    this.#rank(this.#query.write().length, ranked);
    return Array.from(new Uint32Array(this.#scope.memory.buffer, this.#at.numbers, ranked));
  }

  /** Copies a query to scratch. */
  #queryIn(query: ArrayLike<number>): void {
    const x = new Float32Array(this.#scope.memory.buffer, this.#at.query, this.#rowStride);
    x.fill(0);
    x.set(query);
  }

  #searchLists(left: ArrayLike<number>): void {
    const { memory, kernels, params } = this.#scope;
    const { n, probes } = params;
    const [at, parts, lists] = [this.#at, this.#parts, this.#lists];
    if (left.length > at.mostLeft)
      throw new UsageError(`a list of ${left.length} items to leave out is too long for one request`, {
        phase: 'search',
        advice: 'Search without the index',
      });
    new Uint32Array(memory.buffer, at.left, left.length).set(left);
    kernels.clearHeap(at.lows, at.lowColumns, n);
    const { length } = this.#query.write();
    const lows = new Float32Array(memory.buffer, at.lows, n);
    const needed = parts.mask === undefined ? 0 : (probes * parts.guide.stride) / lists;
    const found: Candidates = { count: 0, left: left.length };
    let [ranked, seen] = [0, 0];
    // A filter may leave out most items of the nearest lists. Then more lists are probed, until the number of
    // items compared is the same as without the filter.
    for (let most = probes; ranked < lists; most *= 4) {
      const count = Math.min(most, lists);
      this.#rank(length, count);
      while (ranked < count) {
        if (ranked >= probes && seen >= needed && lows[0] > -Infinity) return this.#score(found);
        const end = Math.max(ranked + 1, Math.min(probes, count));
        seen += this.#scan(ranked, end, found);
        ranked = end;
      }
      if (this.#scope.cancelled() || (seen >= needed && lows[0] > -Infinity)) break;
    }
    this.#score(found);
  }

  /** Writes the `count` lists to probe first to scratch. `length`: of the query, in features that differ. */
  #rank(length: number, count: number): void {
    const { kernels } = this.#scope;
    const { centers, radii } = this.#parts;
    kernels.rankLists(
      this.#at.query,
      centers.pointer,
      4 * centers.stride,
      this.#lists,
      radii.pointer,
      REACH * length,
      count,
      this.#at.ranks,
      this.#at.numbers,
    );
  }

  /** Adds the candidates of ranked lists. Returns the number of their columns that may be found. */
  #scan(first: number, end: number, found: Candidates): number {
    const numbers = new Uint32Array(this.#scope.memory.buffer, this.#at.numbers, end);
    const { starts, mask } = this.#parts;
    let columns = 0;
    for (let next = first; next < end; next++) columns += starts[numbers[next] + 1] - starts[numbers[next]];
    this.scanned += columns;
    if (mask === undefined) {
      this.#scanColumns({ next: first, end, column: 0, stop: this.#parts.guide.stride }, found);
      return columns;
    }
    let seen = 0;
    for (let next = first; next < end; next++) {
      const [from, to] = [starts[numbers[next]], starts[numbers[next] + 1]];
      for (let column = from; column < to; column += MASKED_COLUMNS) {
        const stop = Math.min(to, column + MASKED_COLUMNS);
        seen += this.#gatherMask(mask, column, stop);
        this.#scanColumns({ next, end: next + 1, column, stop }, found);
      }
    }
    return seen;
  }

  /** Writes the mask of the columns from .. to - 1 to scratch. Returns the number that may be found. */
  #gatherMask(mask: Uint8Array, from: number, to: number): number {
    const { memory } = this.#scope;
    const { guide } = this.#parts;
    const items = new Uint32Array(memory.buffer, guide.pointer + 4 * (3 * guide.stride + from), to - from);
    const gathered = new Uint8Array(memory.buffer, this.#at.mask, to - from);
    let count = 0;
    // An unused column has no item of the mask.
    for (let k = 0; k < items.length; k++) count += gathered[k] = mask[items[k]] ?? 0;
    return count;
  }

  #scanColumns(range: ColumnRange, found: Candidates): void {
    const { kernels } = this.#scope;
    const scan = this.#scanOf(range, found.left);
    for (;;) {
      found.count = kernels.scanLists(scan.address, range.end, found.count);
      if (scan.get('next') >= range.end) return;
      this.#score(found);
    }
  }

  /** Writes the arguments of scanLists to scratch. */
  #scanOf({ next, column, stop }: ColumnRange, leftCount: number): Struct<typeof Scan> {
    const { memory, params } = this.#scope;
    const { centers, coarse, guide, signs, mask } = this.#parts;
    const at = this.#at;
    return new Struct(memory, at.scan, Scan).set({
      query: at.query,
      centers: centers.pointer,
      size: 4 * centers.stride,
      coarseQuery: at.coarse,
      width: 4 * coarse.stride,
      bound: at.bound,
      coarse: coarse.pointer,
      guide: guide.pointer,
      stride: 4 * guide.stride,
      starts: at.starts,
      numbers: at.numbers,
      // Searches of all lists are exact.
      signs: params.margin !== null && params.probes < params.wholeLists ? signs.pointer : 0,
      table: at.table,
      left: at.left,
      leftCount,
      mask: mask === undefined ? 0 : at.mask,
      masked: column,
      n: params.n,
      lows: at.lows,
      columns: at.lowColumns,
      found: at.found,
      room: MOST_CANDIDATES,
      next,
      column,
      stop,
    });
  }

  /** Computes the exact scores of the candidates that are still among the best by their bounds. */
  #score(found: Candidates): void {
    const { memory } = this.#scope;
    const { guide } = this.#parts;
    const at = this.#at;
    const [worst] = new Float32Array(memory.buffer, at.lows, 1);
    const columns = new Uint32Array(memory.buffer, at.found, 2 * found.count);
    const uppers = new Float32Array(memory.buffer, at.found, 2 * found.count);
    const items = new Uint32Array(memory.buffer, guide.pointer + 12 * guide.stride, guide.stride);
    const kept: number[] = [];
    for (let k = 0; k < columns.length; k += 2) if (!(uppers[k + 1] < worst)) kept.push(columns[k]);
    found.count = 0;
    if (this.#candidates) for (const column of kept) this.#candidates.push(column);
    else this.#offer(kept.map((column) => items[column]));
  }

  #searchChosen(allowed: readonly number[], left: ArrayLike<number>): void {
    const { mask } = this.#parts;
    const out = new Set(Array.from(left));
    this.#offer(allowed.filter((item) => !out.has(item) && (mask === undefined || mask[item] === 1)));
  }

  /** Computes the exact scores of items, and adds them to the list if they are among its best. */
  #offer(chosen: readonly number[]): void {
    const { memory, kernels, params } = this.#scope;
    const at = this.#at;
    const rows = new Float32Array(memory.buffer, at.rows, ROWS * this.#rowStride);
    const numbers = new Uint32Array(memory.buffer, at.rowItems, ROWS);
    const search = new Struct(memory, at.search, Search).clear().set({
      query: at.query,
      rank: params.rank,
      size: 4 * this.#rowStride,
      n: params.n,
      scores: at.scores,
      items: at.items,
    });
    for (let first = 0; first < chosen.length; first += ROWS) {
      const count = Math.min(ROWS, chosen.length - first);
      for (let row = 0; row < count; row++) {
        numbers[row] = chosen[first + row];
        this.#read(numbers[row], rows, row * this.#rowStride);
      }
      kernels.offerRows(search.address, at.rows, at.rowItems, count);
    }
  }
}

/**
 * Columns of the ranked lists next .. end - 1: those from `column` of the first list (0: from its first) and
 * before `stop`.
 */
interface ColumnRange {
  readonly next: number;
  readonly end: number;
  readonly column: number;
  readonly stop: number;
}

/** The candidates of one search, and the number of items to leave out. */
interface Candidates {
  count: number;
  readonly left: number;
}

/** Factor of the rounding errors of one product: of the center's, the difference's, and rotations. */
const PRODUCTS = 4;

/** Writes what scanLists reads of a query: x̂ of the rotated query, the table of signs, and `bound`. */
class ListQuery {
  readonly #scope: TaskScope<ListSearch>;
  readonly #at: ReturnType<typeof listScratch>;
  readonly #differs: Float32Array;
  readonly #spreads: Spreads;
  readonly #rotate: (vector: Float32Array) => void;
  readonly #all: Float32Array;

  constructor(
    scope: TaskScope<ListSearch>,
    at: ReturnType<typeof listScratch>,
    { pointer, stride }: MatrixView,
    lists: number,
  ) {
    const { memory, params } = scope;
    [this.#scope, this.#at] = [scope, at];
    // Three rows after the centers: see ListParts.
    const [differs, means, variances] = [0, 1, 2].map(
      (row) => new Float32Array(memory.buffer, pointer + 4 * (lists + row) * stride, params.rank),
    );
    [this.#differs, this.#spreads] = [differs, { means, variances }];
    this.#rotate = rotation(params.rank);
    this.#all = new Float32Array(params.rank).fill(1);
  }

  /** Writes them for the query in scratch. Returns ‖x‖ over the features in which vectors differ. */
  write(): { readonly length: number } {
    const { memory, params } = this.#scope;
    const { rank, longest, margin } = params;
    const at = this.#at;
    const x = new Float32Array(memory.buffer, at.query, rank);
    let squares = 0;
    for (const value of x) squares += value * value;
    const rotated = x.map((value, k) => (this.#differs[k] === 0 ? 0 : value));
    this.#rotate(rotated);
    const width = 16 * Math.ceil(rank / 16);
    const coarse = new Int16Array(memory.buffer, at.coarse, width);
    const { length, missing, step } = roundQuery(rotated, this.#all, coarse);
    const table = new Uint8Array(memory.buffer, at.table, 4 * width);
    const { shift, inverse } = fillSignTable(rotated, this.#spreads, margin ?? 0, table);
    const slack = PRODUCTS * roundings(rank) * Math.sqrt(squares) * longest;
    new Float32Array(memory.buffer, at.bound, 6).set([length, missing, step, slack, shift, inverse]);
    return { length };
  }
}

/** The highest entry of a table: 16 of them fit in a byte. */
const MOST_ENTRY = 15;

/** The mean of |d_k| / ‖d‖ for each feature k, and the variance of d_k / ‖d‖ if its sign is known. */
interface Spreads {
  readonly means: Float32Array;
  readonly variances: Float32Array;
}

/**
 * Writes sums of ±x_k m_k to `table`: for each four features the 16 sums, as whole numbers of a step from the
 * lowest sum. A bit of 1 in the pattern is a minus. A column whose score xᵀd / ‖d‖ is t has a sum of about
 * ρ² t, where ρ² is the part of the variance of scores that sums explain. Returns numbers by which t is
 * compared with sums of table entries: (t + shift) inverse is the least sum that a column needs, which is
 * `margin` standard deviations below the sum expected of a column with score t.
 */
export function fillSignTable(
  x: ArrayLike<number>,
  { means, variances }: Spreads,
  margin: number,
  table: Uint8Array,
) {
  let [range, all, known, unknown] = [0, 0, 0, 0];
  for (let k = 0; k < x.length; k += 4) {
    let sum = 0;
    for (let one = k; one < Math.min(k + 4, x.length); one++) {
      sum += Math.abs(x[one] * means[one]);
      known += (x[one] * means[one]) ** 2;
      unknown += x[one] ** 2 * variances[one];
    }
    range = Math.max(range, 2 * sum);
    all += sum;
  }
  const inverse = range > 0 ? MOST_ENTRY / range : 0;
  for (let group = 0; 16 * group < table.length; group++) fillGroup(x, means, inverse, group, table);
  // Of the sum, for a given score: its mean is ρ² t.
  const explained = known / (known + unknown);
  const deviation = Math.sqrt(known * (1 - explained));
  return { shift: (all - margin * deviation) / explained, inverse: inverse * explained };
}

const sums = new Float64Array(16);

function fillGroup(
  x: ArrayLike<number>,
  means: Float32Array,
  inverse: number,
  group: number,
  table: Uint8Array,
): void {
  sums[0] = 0;
  for (let bit = 0; bit < 4; bit++) {
    const k = 4 * group + bit;
    const value = k < x.length ? x[k] * means[k] : 0;
    // From the lowest sum: the sign that agrees with x adds 2 |x m|.
    const [plus, minus] = value > 0 ? [2 * value, 0] : [0, -2 * value];
    for (let pattern = 0; pattern < 1 << bit; pattern++) {
      sums[pattern | (1 << bit)] = sums[pattern] + minus;
      sums[pattern] += plus;
    }
  }
  for (let pattern = 0; pattern < 16; pattern++)
    table[16 * group + pattern] = Math.round(sums[pattern] * inverse);
}
