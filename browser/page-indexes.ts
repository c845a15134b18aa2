import type { RunOptions } from '../api/run-session.ts';
import {
  type IndexUse,
  LARGE,
  missingIndex,
  probesOf,
  type RequestedModel,
  type UsedIndexes,
} from '../api/serving/served-model.ts';
import { crc32OfBytes } from '../connectors/model/decode-metadata.ts';
import { type IndexKind, codeBytes } from '../connectors/model/index-layout.ts';
import { rotation, vectorReader } from '../cpu/tasks/lists/list-vectors.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import {
  bestOfRows,
  candidatesInLists,
  type Found,
  type ListIndex,
  type PlacedLists,
  placeLists,
  rankLists,
  type SearchRequest,
} from '../operators/serving/search.ts';
import type { PageItems } from './page-items.ts';
import { NO_ITEM, PageLists, partOfLists } from './page-lists.ts';
import type { Fetch } from './remote-file.ts';
import { SharedValue } from './shared-request.ts';

interface Opened {
  readonly lists: PageLists;
  /** True if the checksum of all item factors was compared; if not, the rows of each search are. */
  readonly isChecked: boolean;
}

/** The vectors of a search are the rows that it reads: see `bestOfRows`. */
const noVectors = new Float32Array(0);

/** The indexes of a model on a web server. They are opened when a request first uses them. */
export class PageIndexes implements UsedIndexes {
  readonly #folder: string;
  readonly #items: PageItems;
  readonly #fetch: Fetch;
  readonly #opening: Readonly<Record<IndexKind, SharedValue<PageLists | undefined>>> = {
    recommend: new SharedValue((signal) => this.#open('recommend', signal)),
    similar: new SharedValue((signal) => this.#open('similar', signal)),
  };
  readonly #opened = new Map<IndexKind, Opened>();
  #served: RequestedModel | undefined;

  /** `folder`: the address of the model. */
  constructor(folder: string, items: PageItems, fetch: Fetch) {
    [this.#folder, this.#items, this.#fetch] = [folder, items, fetch];
  }

  /** Gives the model whose requests use the indexes. */
  serve(served: RequestedModel): void {
    this.#served = served;
  }

  /** Opens an index. Undefined if the model has none of this kind. */
  async open(kind: IndexKind, signal: AbortSignal | undefined): Promise<PageLists | undefined> {
    return this.#opening[kind].get(signal);
  }

  async #open(kind: IndexKind, signal: AbortSignal): Promise<PageLists | undefined> {
    const { items, rank: features, loaded } = this.#items;
    const shape = { items, features };
    const lists = await PageLists.open(this.#folder, kind, shape, { fetch: this.#fetch, signal });
    if (lists === undefined) return undefined;
    if (loaded) {
      const { buffer, byteOffset, byteLength } = loaded;
      if (crc32OfBytes(new Uint8Array(buffer, byteOffset, byteLength)) !== lists.header.factors)
        throw lists.foreign('its checksum of the item factors is another');
    }
    this.#opened.set(kind, { lists, isChecked: loaded !== undefined });
    return lists;
  }

  /**
   * Reads what a request with this option needs: an index, or the factors of all items for an exact search.
   */
  async prepare(kind: IndexKind, use: IndexUse | undefined, signal: AbortSignal): Promise<void> {
    const isUsed = typeof use === 'number' || use === true || !this.#items.loaded;
    if (use !== false && (isUsed || this.#items.items >= LARGE)) await this.open(kind, signal);
    if (this.probes(kind, use) === undefined) await this.#items.load(signal);
  }

  /** Pages do not load whole indexes. */
  async stored(kind: IndexKind): Promise<never> {
    throw missingIndex(kind);
  }

  /** While the factors are not in memory, an index is used at any number of items. */
  probes(kind: IndexKind, use: IndexUse = 'auto'): number | undefined {
    const header = this.#opened.get(kind)?.lists.header;
    const own = use === 'auto' && header !== undefined && !this.#items.loaded ? true : use;
    return probesOf(header, kind, own, this.#items.items);
  }

  /**
   * The results of Node, bit for bit: the same kernels rank all lists by their centers, find the candidates in
   * the lists that are probed, and compute the exact scores of these.
   */
  readonly search = async (
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions,
  ): Promise<Found> => {
    const [opened, served] = [this.#opened.get(kind), this.#served];
    if (opened === undefined) throw missingIndex(kind);
    if (served === undefined) throw new Error('the indexes have no model');
    const { searches } = served;
    const width = this.#items.rank;
    const placed = await searches.prepareLists(
      kind,
      async () => opened.lists.ranking,
      () => ({ ...opened.lists.header, vectors: noVectors, width }),
    );
    return searches.compute(async (ctx) => {
      const { allowed, left = [] } = request;
      const { items, isRow } = allowed
        ? withoutItems(allowed, left)
        : await this.#candidates(opened.lists, placed, probes, request, ctx);
      const rows = await this.#items.read(items, { first: 0, count: width }, ctx.signal);
      if (isRow && !opened.isChecked && !isRow(rows))
        throw opened.lists.foreign('its items have other factors');
      const best = await bestOfRows(placed, rows, request, ctx);
      return { positions: best.positions.map((row) => items[row]), scores: best.scores };
    }, options);
  };

  /** The items of which a search computes the exact scores, ascending. */
  async #candidates(
    lists: PageLists,
    placed: PlacedLists,
    probes: number,
    request: SearchRequest,
    ctx: ExecutionContext,
  ): Promise<Candidates> {
    const rank = (count: number) => rankLists(placed, request.query, count, ctx);
    const probed = await probedLists(lists, rank, probes, request, ctx.signal);
    const part = await partOfLists(lists, probed, ctx.signal);
    const space = { vectors: noVectors, width: this.#items.rank };
    const columns = await candidatesInLists(await placeLists(part, space, ctx), probes, request, ctx);
    const itemOf = part.guide.subarray((3 * part.guide.length) / 4);
    const byItem = columns.toSorted((one, other) => itemOf[one] - itemOf[other]);
    return {
      items: Uint32Array.from(byItem, (column) => itemOf[column]),
      isRow: (rows) => checkCodes(part, byItem, rows, this.#items.rank),
    };
  }
}

interface Candidates {
  readonly items: Uint32Array;
  /** True if the rows are the vectors of which the index has differences. */
  readonly isRow?: (rows: Float32Array) => boolean;
}

function withoutItems(allowed: ArrayLike<number>, left: ArrayLike<number>): Candidates {
  const out = new Set(Array.from(left));
  return {
    items: Uint32Array.from(allowed)
      .filter((item) => !out.has(item))
      .toSorted(),
  };
}

/**
 * The first `probes` lists; if these have fewer than n items that are not left out, further ones, too, as in
 * Node. `rank` gives the first lists, by their number.
 */
async function probedLists(
  lists: PageLists,
  rank: (count: number) => Promise<readonly number[]>,
  probes: number,
  { n, left = [] }: SearchRequest,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const out = new Set(Array.from(left));
  let order = await rank(probes);
  let [probed, items] = [0, 0];
  for (let next = probes; probed < lists.header.lists && (probed === 0 || items < n); next = 1) {
    if (probed === order.length) order = await rank(4 * probed);
    const columns = await lists.columns(order.slice(probed, probed + next), signal);
    probed += columns.length;
    for (const own of columns)
      for (let at = 0; at < own.items.length && items < n; at++)
        if (own.items[at] !== NO_ITEM && !out.has(own.items[at])) items++;
  }
  return order.slice(0, probed);
}

/** Above the rounding errors of float32 in the remainders. */
const ROOM = 1e-4;

/**
 * True if the rows are the vectors of which the columns of an index have differences in 8 bits, as
 * `encode-lists` writes them: a vector is at most the column's remainder away from center and difference.
 *
 * @param rows one row of `width` numbers for each column
 */
function checkCodes(
  { rank, normalized, centers, starts, codes, guide }: ListIndex,
  columns: readonly number[],
  rows: Float32Array,
  width: number,
): boolean {
  const all = guide.length / 4;
  const numbers = new Float32Array(guide.buffer, guide.byteOffset, guide.length);
  const bytes = new Int8Array(codes.buffer, codes.byteOffset, codes.byteLength);
  const read = vectorReader(rows, { width, rank, normalized });
  const rotate = rotation(rank);
  const vector = new Float32Array(rank);
  return columns.every((column, row) => {
    const list = starts.findLastIndex((start) => start <= column);
    read(row, vector, 0);
    let [away, squares] = [0, 0];
    for (let k = 0; k < rank; k++) {
      squares += vector[k] ** 2;
      vector[k] -= centers[list * rank + k];
    }
    rotate(vector);
    const [remainder, scale] = [numbers[all + column], numbers[2 * all + column]];
    for (let k = 0; k < rank; k++) away += (vector[k] - scale * bytes[column * codeBytes(rank) + k]) ** 2;
    return Math.sqrt(away) <= remainder * (1 + ROOM) + ROOM * 1e-2 * Math.sqrt(squares);
  });
}
