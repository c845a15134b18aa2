import { type IndexUse, LARGE, missingIndex, probesOf, type UsedIndexes } from '../api/serving/index-use.ts';
import type { RunOptions } from '../api/run-session.ts';
import { indexSpace } from '../api/serving/search-indexed.ts';
import type { RequestedModel } from '../api/serving/served-model.ts';
import { crc32OfBytes } from '../connectors/model/crc-32.ts';
import { INDEX_ADVICE, type IndexKind } from '../connectors/model/index-layout.ts';
import { rankLists } from '../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest } from '../operators/serving/search.ts';
import { candidatesOf, type ProbedList } from './list-candidates.ts';
import { PageLists } from './page-lists.ts';
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
   * The best items of the lists that Node searches: the lists are ranked by the same kernel, and the exact
   * scores of all items that can be among the best are computed by the same kernel. Node leaves out items by
   * their signs (cpu/assembly/list-signs.ts), so it may miss a few of them; the page misses none.
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
    const placed = await searches.prepareLists(
      kind,
      async () => lists.ranking,
      () => indexSpace(served, kind),
    );
    const ctx = session.requestContext(options);
    let { allowed } = request;
    if (allowed === undefined) {
      const order = await rankLists(placed, request.query, ctx);
      allowed = await candidatesIn(lists, order, probes, request);
    }
    return searches.searchLists(kind, probes, { ...request, allowed }, options);
  };
}

/**
 * The candidates in the first `probes` lists; if these have fewer than n items that are not left out, in
 * further ones, too, as in Node.
 */
async function candidatesIn(
  lists: PageLists,
  order: readonly number[],
  probes: number,
  { query, n, left = [] }: SearchRequest,
): Promise<readonly number[]> {
  const probed: ProbedList[] = [];
  for (let next = Math.min(probes, order.length); ; next = 1) {
    const numbers = order.slice(probed.length, probed.length + next);
    const columns = await Promise.all(numbers.map((list) => lists.columns(list)));
    numbers.forEach((list, i) =>
      probed.push({ base: productOf(query, lists.center(list)), columns: columns[i] }),
    );
    const found = candidatesOf(query, probed, { n, left, longest: lists.header.longest });
    if (found.compared >= n || probed.length === order.length) return found.items;
  }
}

/** xᵀc, where x may have fewer features: the others are 0. */
function productOf(query: ArrayLike<number>, center: Float32Array): number {
  let sum = 0;
  for (let k = 0; k < query.length; k++) sum += query[k] * center[k];
  return sum;
}
