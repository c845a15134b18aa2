import { checkOptions, runOptionNames } from '../api/check-options.ts';
import type { RunOptions } from '../api/run-session.ts';
import { explainItem, type ExplainOptions, type Explanation } from '../api/serving/explain.ts';
import type { RatedItem } from '../api/serving/fold-in-request.ts';
import {
  checkCount,
  checkedId,
  checkNames,
  checkRequest,
  nameOf,
  type RecommendedItem,
  type RequestOptions,
  type UserRecommendations,
} from '../api/serving/request.ts';
import { Searches } from '../api/serving/searches.ts';
import {
  idsOf,
  type IndexUse,
  missingIndex,
  type RequestedModel,
  sideSpace,
  type UsedIndexes,
} from '../api/serving/served-model.ts';
import { indexKindOf, type SimilarItems, type SimilarTo } from '../api/serving/similar-to.ts';
import type { IndexKind } from '../connectors/model/index-layout.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import type { JsonObject } from '../engine/json.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import { keyCount, type KeyColumn } from '../engine/keys/key-column.ts';
import { oneOf } from '../engine/nearest.ts';
import type { ItemNames } from '../operators/serving/item-names.ts';
import { checkSimilarity } from '../operators/serving/similar.ts';
import { type PageDeviceName, pageDevices } from './device-choice.ts';
import { ModelGpu } from './model-gpu.ts';
import { RemoteNames } from './names/remote-names.ts';
import type { PageIndexes } from './page-indexes.ts';
import type { PageItems } from './page-items.ts';
import { checkIndexDevice, recommendToVisitors, similarToItems, type Visitors } from './page-requests.ts';
import type { PageSession } from './page-session.ts';
import type { WebGpuCode } from './web-gpu.ts';

/** The device that searches. */
export interface PageDeviceOption {
  /**
   * `cpu`: WebAssembly. `gpu`: WebGPU; throws UsageError where the browser has none. `auto`: WebGPU for
   * searches that take the processor long, if the browser has it on a graphics card; else WebAssembly.
   * Default: auto.
   */
  readonly device?: PageDeviceName;
}

/** Options of `PageModel.recommend` and `PageModel.recommendToVisitors`. */
export type PageRequestOptions = Omit<RequestOptions, 'exclude' | 'filter' | 'names'> &
  PageNames &
  PageDeviceOption;

/** Options of `PageModel.similar` and `PageModel.similarItems`. */
export type PageSimilarOptions = Omit<SimilarTo, 'side' | 'names'> & PageNames & PageDeviceOption;

/** Options of `PageModel.explain`. */
export type PageExplainOptions = Omit<ExplainOptions, 'names'> & PageNames;

/** The parts of a model that stay on a server. */
interface RemoteParts {
  readonly items: PageItems;
  readonly indexes: PageIndexes;
}

/** A model that was trained in the page has no index. */
const noIndexes: UsedIndexes = {
  stored: (kind) => Promise.reject(missingIndex(kind)),
  probes: (kind, use = 'auto') => {
    if (use !== 'auto' && use !== false) throw missingIndex(kind);
    return undefined;
  },
};

/**
 * The items of a model in a page: recommends to visitors by their own ratings, which stay in the page. The
 * methods have the names, options and results of the methods of `Model` in Node.
 */
export class PageModel {
  /** f: factors of an item, without biases. */
  readonly rank: number;
  readonly metadata: JsonObject;
  /** Number of ratings of each item in the training, in the order of `itemIds`, if the model has them. */
  readonly itemCounts: Uint32Array | undefined;
  readonly #served: RequestedModel;
  readonly #session: PageSession;
  readonly #gpu: ModelGpu;
  readonly #remote: RemoteParts | undefined;

  /** @internal */
  constructor(
    parts: Omit<RequestedModel, 'session' | 'searches' | 'indexes'>,
    session: PageSession,
    { remote, webGpu }: { readonly remote?: RemoteParts; readonly webGpu?: WebGpuCode | undefined } = {},
  ) {
    this.#remote = remote;
    this.rank = parts.rank;
    this.metadata = parts.metadata;
    this.itemCounts = parts.itemCounts;
    this.#session = session;
    this.#served = {
      ...parts,
      session,
      searches: new Searches(session),
      indexes: remote?.indexes ?? noIndexes,
    };
    this.#gpu = new ModelGpu({ served: this.#served, session, items: remote?.items }, webGpu);
    remote?.indexes.serve(this.#served);
  }

  get itemCount(): number {
    return keyCount(this.#served.factors.items);
  }

  /** The ids of all items, ascending: numbers, bigints beyond the safe integers, or texts. */
  itemIds(): Id[] {
    const ids = idsOf(this.#served, 'item');
    return Array.from({ length: this.itemCount }, (_, position) => ids.at(position));
  }

  hasItem(id: Id): boolean {
    return findId(this.#served.factors.items, id) >= 0;
  }

  /**
   * The n best items for a visitor who gave these ratings, without the rated items. Factors are solved from
   * the ratings as `Model.recommend` of Node does; nothing leaves the page.
   */
  async recommend(
    visitor: { readonly ratings: readonly RatedItem[] },
    n: number,
    options: PageRequestOptions = {},
  ): Promise<UserRecommendations> {
    if (typeof visitor !== 'object' || visitor === null)
      throw new UsageError(`recommend takes the visitor's ratings, got ${shown(visitor)}`, {
        advice: 'For example { ratings: [{ item: 5, rating: 4 }] }',
      });
    const [list] = await this.#recommend('recommend', [visitor], n, options);
    return list;
  }

  /**
   * The n best items for each of several visitors, in their order: see `recommend`. Throws UsageError if the
   * ratings of one of them have no finite solution.
   */
  async recommendToVisitors(
    visitors: readonly { readonly ratings: readonly RatedItem[] }[],
    n: number,
    options: PageRequestOptions = {},
  ): Promise<UserRecommendations[]> {
    const method = 'recommendToVisitors';
    const isVisitor = (one: unknown): boolean => typeof one === 'object' && one !== null;
    if (!Array.isArray(visitors) || !visitors.every(isVisitor)) {
      const wrong: unknown = Array.isArray(visitors) ? visitors.find((one) => !isVisitor(one)) : visitors;
      throw new UsageError(`${method} takes a list of visitors, got ${shown(wrong)}`, {
        advice: 'For example [{ ratings: [{ item: 5, rating: 4 }] }]',
      });
    }
    return this.#recommend(method, visitors, n, options);
  }

  async #recommend(
    method: string,
    visitors: Visitors,
    n: number,
    { device = 'auto', ...options }: PageRequestOptions,
  ): Promise<UserRecommendations[]> {
    const [given, remote] = splitNames(options);
    oneOf('device', device, pageDevices);
    checkIndexDevice(method, given.index, device);
    await this.#prepareSearch('recommend', { ...given, device });
    checkRequest(given, this.#served);
    checkCount(n);
    const searched = { served: this.#served, gpu: this.#gpu };
    const lists = await recommendToVisitors(searched, visitors, n, { ...given, device });
    return this.#namesOf(remote, given).namedLists<'items', RecommendedItem, UserRecommendations>(
      lists,
      'items',
      ({ item }) => item,
    );
  }

  /** The n items most similar to one item. An unknown item has `known: false` and no similar ones. */
  async similar(id: Id, n: number, options: PageSimilarOptions = {}): Promise<SimilarItems> {
    const [rows] = await this.#similar('similar', () => [checkedId('similar', id)], n, options);
    return rows;
  }

  /**
   * The n items most similar to each of several items, in their order, or to all items of the model. An
   * unknown item has `known: false` and no similar ones.
   */
  async similarItems(
    ids: readonly Id[] | 'all',
    n: number,
    options: PageSimilarOptions = {},
  ): Promise<SimilarItems[]> {
    return this.#similar('similarItems', () => (ids === 'all' ? this.itemIds() : ids), n, options);
  }

  async #similar(
    method: string,
    ids: () => readonly Id[],
    n: number,
    options: PageSimilarOptions,
  ): Promise<SimilarItems[]> {
    const known = ['similarity', 'names', 'index', 'device', ...runOptionNames] as const;
    checkOptions(method, options, known, "{ similarity: 'dot' }");
    const { device = 'auto', ...others } = options;
    const [given, remote] = splitNames(others);
    const { similarity = 'cosine', index } = given;
    oneOf('device', device, pageDevices);
    checkIndexDevice(method, index, device);
    const kind = indexKindOf(checkSimilarity(similarity));
    await this.#prepareSearch(kind, { ...given, device });
    const searched = { served: this.#served, gpu: this.#gpu };
    const found = await similarToItems(searched, method, ids(), n, { ...given, device });
    return this.#namesOf(remote, given).namedLists<'similar', SimilarItems['similar'][number], SimilarItems>(
      found,
      'similar',
      ({ item }) => item,
    );
  }

  /** Splits a score exactly into the contributions of the visitor's ratings, as `Model.explain` does. */
  async explain(
    ratings: readonly RatedItem[],
    item: Id,
    options: PageExplainOptions = {},
  ): Promise<Explanation> {
    checkOptions('explain', options, ['regParam', 'names', ...runOptionNames], '{ regParam: 0.1 }');
    const [given, remote] = splitNames(options);
    checkNames('explain', given.names);
    const found = await explainItem(this.#served, ratings, item, given);
    const [asked, ...contributions] = await this.#namesOf(remote, given).named(
      [found, ...found.contributions],
      (row) => row.item,
    );
    return { ...(asked as Explanation), contributions: contributions as typeof found.contributions };
  }

  /** Reads what a search on the processor needs; for searches on the GPU see ModelGpu. */
  async #prepareSearch(
    kind: IndexKind,
    { index, device, ...run }: RunOptions & { readonly index?: IndexUse; readonly device: PageDeviceName },
  ): Promise<void> {
    this.#served.searches.requireOpen();
    if (device === 'gpu') return;
    const { signal } = this.#session.requestContext(run);
    await this.#remote?.indexes.prepare(kind, index, signal);
  }

  #namesOf(names: RemoteNames | undefined, { signal }: RunOptions): NamesOfRequest {
    return new NamesOfRequest(names, this.#served.factors.items, signal);
  }

  /**
   * Builds the index of the items, for exact searches. Without this call the first recommendation builds it. A
   * model that was opened with its list index needs no such call.
   */
  async prepare(): Promise<void> {
    if (this.#remote && !this.#remote.items.loaded) return;
    const { name, space } = sideSpace(this.#served, 'item');
    await this.#served.searches.prepare(name, space);
  }

  /** Frees the memory; later work throws UsageError. */
  async close(): Promise<void> {
    await this.#served.searches.close();
    await this.#session.close();
    await this.#gpu.close();
  }
}

/** Names of items in memory, or on a web server. */
export interface PageNames {
  readonly names?: ItemNames | RemoteNames;
}

/** The options without names on a server, which are read for the found items alone, and these names. */
function splitNames<Options extends PageNames>({
  names,
  ...options
}: Options): readonly [Omit<Options, 'names'> & { readonly names?: ItemNames }, RemoteNames | undefined] {
  return names instanceof RemoteNames
    ? [options, names]
    : [{ ...options, ...(names !== undefined && { names }) }, undefined];
}

/** Names on a server, which a request reads for some items of a model. */
class NamesOfRequest {
  readonly #names: RemoteNames | undefined;
  readonly #items: KeyColumn;
  readonly #signal: AbortSignal | undefined;

  /** `items`: the ids of the model. Without names, rows are returned as they are. */
  constructor(names: RemoteNames | undefined, items: KeyColumn, signal: AbortSignal | undefined) {
    [this.#names, this.#items, this.#signal] = [names, items, signal];
  }

  /** The rows with the names that the file has for them. */
  async named<Row extends object>(rows: readonly Row[], idOf: (row: Row) => Id): Promise<readonly Row[]> {
    if (this.#names === undefined) return rows;
    const found = await this.#names.names(rows.map(idOf), (id) => findId(this.#items, id), this.#signal);
    return rows.map((row) => ({ ...row, ...nameOf(found, idOf(row)) }));
  }

  /** Lists with the names of their rows, which are read for all lists together. */
  async namedLists<
    Name extends string,
    Row extends object,
    List extends Readonly<Record<Name, readonly Row[]>>,
  >(lists: List[], field: Name, idOf: (row: Row) => Id): Promise<List[]> {
    if (this.#names === undefined) return lists;
    const rows = await this.named(
      lists.flatMap((list) => list[field]),
      idOf,
    );
    let next = 0;
    return lists.map((list) => ({ ...list, [field]: rows.slice(next, (next += list[field].length)) }));
  }
}
