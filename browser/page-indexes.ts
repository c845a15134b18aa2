import { type IndexUse, LARGE, missingIndex, probesOf, type UsedIndexes } from '../api/serving/index-use.ts';
import type { RunOptions } from '../api/run-session.ts';
import { indexSpace } from '../api/serving/search-indexed.ts';
import type { RequestedModel } from '../api/serving/served-model.ts';
import { crc32OfBytes } from '../connectors/model/crc-32.ts';
import { INDEX_ADVICE, type IndexKind } from '../connectors/model/index-layout.ts';
import { placeLists, rankLists, searchInLists } from '../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest } from '../operators/serving/search.ts';
import { NO_ITEM, PageLists } from './page-lists.ts';
import { partOfLists } from './part-of-lists.ts';
import { problem, type RemoteOptions } from './remote-file.ts';

/** The model that the indexes are of. */
export interface IndexedItems {
  /** The address of the model's folder. */
  readonly folder: string;
  readonly items: number;
  readonly itemFactors: Float32Array;
  readonly rank: number;
}

/** The indexes of a model on a web server. They are opened when a request first uses them. */
export class PageIndexes implements UsedIndexes {
  readonly #model: IndexedItems;
  readonly #remote: RemoteOptions;
  readonly #opening = new Map<IndexKind, Promise<PageLists | undefined>>();
  readonly #opened = new Map<IndexKind, PageLists>();
  #served: RequestedModel | undefined;

  constructor(model: IndexedItems, remote: RemoteOptions) {
    [this.#model, this.#remote] = [model, remote];
  }

  /** Gives the model whose requests use the indexes. */
  serve(served: RequestedModel): void {
    this.#served = served;
  }

  /** Opens an index, if a request with this option uses it. */
  async open(kind: IndexKind, use: IndexUse | undefined): Promise<void> {
    const isUsed = typeof use === 'number' || use === true || this.#model.items >= LARGE;
    if (use === false || !isUsed) return;
    let opening = this.#opening.get(kind);
    if (opening === undefined) {
      opening = this.#open(kind);
      this.#opening.set(kind, opening);
      opening.catch(() => this.#opening.delete(kind));
    }
    const lists = await opening;
    if (lists !== undefined) this.#opened.set(kind, lists);
  }

  async #open(kind: IndexKind): Promise<PageLists | undefined> {
    const { folder, items, rank: features, itemFactors } = this.#model;
    const lists = await PageLists.open(folder, kind, { items, features }, this.#remote);
    const { buffer, byteOffset, byteLength } = itemFactors;
    if (lists && crc32OfBytes(new Uint8Array(buffer, byteOffset, byteLength)) !== lists.header.factors)
      throw problem(
        folder,
        `the index ${kind}.lists is of another model: its checksum of the item factors is another`,
        INDEX_ADVICE,
      );
    return lists;
  }

  /** Pages do not load whole indexes. */
  async stored(kind: IndexKind): Promise<never> {
    throw missingIndex(kind);
  }

  probes(kind: IndexKind, use: IndexUse = 'auto'): number | undefined {
    return probesOf(this.#opened.get(kind)?.header, kind, use, this.#model.items);
  }

  /**
   * The results of Node, bit for bit: the same kernels rank all lists by their centers, then search the lists
   * that are probed.
   */
  readonly search = async (
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions,
  ): Promise<Found> => {
    const lists = this.#opened.get(kind);
    if (lists === undefined) throw missingIndex(kind);
    const served = this.#served;
    if (served === undefined) throw new Error('the indexes have no model');
    const { session, searches } = served;
    const space = () => indexSpace(served, kind);
    const placed = await searches.prepareLists(kind, async () => lists.ranking, space);
    if (request.allowed !== undefined) return searches.searchLists(kind, probes, request, options);
    const order = await rankLists(placed, request.query, session.requestContext(options));
    const part = await partOfLists(lists, await probedLists(lists, order, probes, request));
    return searches.compute(async (ctx) => {
      const [found] = await searchInLists(await placeLists(part, space(), ctx), probes, [request], ctx);
      return found;
    }, options);
  };
}

/**
 * The first `probes` lists; if these have fewer than n items that are not left out, further ones, too, as in
 * Node.
 */
async function probedLists(
  lists: PageLists,
  order: readonly number[],
  probes: number,
  { n, left = [] }: SearchRequest,
): Promise<readonly number[]> {
  const out = new Set(Array.from(left));
  let [probed, items] = [0, 0];
  for (let next = probes; probed < order.length && (probed === 0 || items < n); next = 1) {
    const columns = await Promise.all(order.slice(probed, probed + next).map((list) => lists.columns(list)));
    probed += columns.length;
    for (const own of columns)
      items += own.items.reduce((sum, item) => sum + (item === NO_ITEM || out.has(item) ? 0 : 1), 0);
  }
  return order.slice(0, probed);
}
