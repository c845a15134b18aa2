import type { ExecutionContext } from '../../engine/run/context.ts';
import type { IndexHeader, IndexKind } from '../../connectors/model/index-layout.ts';
import {
  indexKinds,
  type StoredIndex,
  writeIndex,
  factorsChecksum,
  type IndexHead,
  readIndex,
} from '../../connectors/model/item-index-file.ts';
import { readModelHead } from '../../connectors/model/model-store.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { followed } from '../../engine/run/context.ts';
import { buildLists, defaultLists, queryWeights } from '../../operators/serving/build-lists.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { listBytes, listsOf } from '../../operators/serving/search.ts';
import { unitVector } from '../../operators/serving/similar.ts';
import { unobservedWeight, gramOfItems } from '../../operators/serving/solve-users.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import type { RunOptions, RunSession } from '../run-session.ts';
import {
  listIndexOf,
  indexSpace,
  type RequestedModel,
  type IndexUse,
  missingIndex,
  probesOf,
  type UsedIndexes,
} from './served-model.ts';
import { indexParams } from '../option-params.ts';

export interface BuildIndexOptions extends RunOptions {
  /** Number of lists; default: 4 times the root of the number of items. */
  readonly lists?: number;
  readonly seed?: number;
  /** The searches that it is built for; default: both, of items for users and of similar items. */
  readonly searches?: readonly IndexKind[];
  /** The part of the best items that searches must find in a sample; default 0.97. */
  readonly recall?: number;
}

/** An index that was built. */
export interface BuiltIndex {
  readonly search: IndexKind;
  readonly lists: number;
  /** Lists that are searched by default, and the part of the 20 best items of sampled queries in them. */
  readonly probes: number;
  readonly recall: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** See Model.buildIndex. */
export async function buildIndex(served: ServedModel, options: BuildIndexOptions): Promise<BuiltIndex[]> {
  const lists = { ...indexParams.lists, most: mostLists(served) };
  const params = { ...indexParams, lists };
  checkOptions('buildIndex', options, ['searches', ...runOptionNames], '{ lists: 4000 }', params);
  served.searches.requireOpen();
  const { searches = indexKinds } = options;
  if (
    !Array.isArray(searches) ||
    searches.length === 0 ||
    !searches.every((one) => indexKinds.includes(one as IndexKind))
  )
    throw new UsageError(`searches must be a list of recommend, similar, got ${shown(searches)}`);
  const built: BuiltIndex[] = [];
  for (const kind of new Set(searches)) built.push(await buildOne(served, kind, options));
  return built;
}

function mostLists({ factors }: ServedModel): number {
  return Math.max(1, Math.min(keyCount(factors.items), indexParams.lists.most));
}

async function buildOne(
  served: ServedModel,
  kind: IndexKind,
  options: BuildIndexOptions,
): Promise<BuiltIndex> {
  const start = performance.now();
  const { factors, session, indexes, searches } = served;
  const items = keyCount(factors.items);
  const { seed = indexParams.seed.fallback, recall = indexParams.recall.fallback } = options;
  const { lists = Math.min(mostLists(served), defaultLists(items)) } = options;
  const space = indexSpace(served, kind);
  const weights =
    kind === 'recommend'
      ? queryWeights(factors.userFactors, factors.rank)
      : new Float32Array(space.rank).fill(1);
  const ctx = session.context(options);
  const index = await followed(ctx, () => buildLists(space, { lists, seed, weights }, ctx));
  const header: IndexHeader = {
    kind,
    vectors: items,
    rank: index.rank,
    normalized: index.normalized,
    longest: index.longest,
    margin: index.margin,
    lists: listsOf(index),
    columns: index.guide.length / 4,
    seed,
    probes: listsOf(index),
    recall: 1,
    factors: await indexes.checksum(),
  };
  const { centers, starts, guide, codes } = index;
  const gram = kind === 'recommend' ? await storedGram(served) : undefined;
  const stored: StoredIndex = {
    header: { ...header, ...(gram && { gram: { unobserved: gram.unobserved } }) },
    centers,
    starts,
    guide,
    codes,
    ...(gram && { gram: gram.values }),
  };
  const tune = async () => {
    await searches.dropLists(kind);
    await searches.prepareLists(
      kind,
      async () => listIndexOf(stored),
      () => space,
    );
    return tuneIndex(served, kind, header.lists, recall, options);
  };
  const { margin, ...measured } = await tune().catch(async (error: unknown) => {
    // Later searches use the index that the model had before.
    await searches.dropLists(kind);
    throw error;
  });
  indexes.set({ ...stored, header: { ...stored.header, margin, ...measured } });
  const seconds = (performance.now() - start) / 1000;
  return { search: kind, lists: header.lists, ...measured, bytes: listBytes(index), seconds };
}

/** The Gram matrix by which pages solve new users of implicit data without the factors of all items. */
async function storedGram({ factors, itemCounts: counts, metadata, searches }: ServedModel) {
  const unobserved = unobservedWeight(metadata);
  if (unobserved === undefined) return undefined;
  const gram = (ctx: ExecutionContext) => gramOfItems(factors, { unobserved, counts }, ctx);
  return { unobserved, values: await searches.gram(gram) };
}

/** See Model.saveIndex. */
export async function saveIndexes({ indexes, factors }: ServedModel, directory: string): Promise<void> {
  if (indexes.kinds.length === 0)
    throw new UsageError('the model has no index to save', { advice: 'Build one by model.buildIndex()' });
  const { storage } = await readModelHead(directory);
  const items = keyCount(factors.items);
  if (storage !== undefined && storage.items !== items)
    throw new UsageError(`the folder has another model, of ${storage.items} items instead of ${items}`, {
      phase: 'save',
      file: directory,
      advice: 'Save this model there first',
    });
  for (const kind of indexes.kinds) await writeIndex(directory, await indexes.stored(kind));
}

/** Queries by which searches of an index are tuned, and the length of their lists. */
const QUERIES = 256;
const BEST = 20;

/**
 * Margins of searches by signs, in standard deviations. The first is taken whose loss, in a search of all
 * lists, is at most a third of the loss that the caller allows; null: no item is left out by its signs.
 */
const MARGINS = [1, 1.5, 2, 2.5, 3.5, null];
const SHARE_OF_LOSS = 1 / 3;

/** The default number of lists is at most by this part above a number that is too small. */
const NEAR = 0.04;

/**
 * Chooses the margin of searches by signs and the fewest lists in which the wanted part of the best items of
 * sampled queries is found. The index is in the request threads, and is then searched with that margin.
 */
async function tuneIndex(
  served: ServedModel,
  kind: IndexKind,
  lists: number,
  wanted: number,
  { signal, onEvent }: RunOptions,
) {
  const queries = sampledQueries(served, kind);
  const { searches } = served;
  const find = async (probes: number) => {
    const found = await Promise.all(
      queries.map((query) => searches.searchLists(kind, probes, { query, n: BEST }, { signal, onEvent })),
    );
    return found.map(({ positions }) => positions);
  };
  const best = (await find(lists)).map((positions) => new Set(positions));
  const total = best.reduce((sum, { size }) => sum + size, 0);
  const recallOf = async (probes: number) => {
    const hits = (await find(probes)).map((found, q) => found.filter((at) => best[q].has(at)).length);
    return total === 0 ? 1 : hits.reduce((sum, one) => sum + one, 0) / total;
  };
  const tune = (margin: number | null, wholeLists: number) =>
    searches.tuneLists(kind, { margin, wholeLists });
  const margin = await leastMargin(wanted, async (one) => {
    // Searches of all lists of an index use no signs, unless it is a part of another.
    await tune(one, lists + 1);
    return recallOf(lists);
  });
  await tune(margin, lists);
  return { margin, ...(await fewestProbes(lists, wanted, recallOf)) };
}

async function leastMargin(wanted: number, recallOf: (margin: number) => Promise<number>) {
  const enough = 1 - (1 - wanted) * SHARE_OF_LOSS;
  for (const margin of MARGINS) if (margin === null || (await recallOf(margin)) >= enough) return margin;
  return null;
}

/** Found by doubling, then by halving the range between too few lists and enough. */
async function fewestProbes(lists: number, wanted: number, recallOf: (probes: number) => Promise<number>) {
  let tooFew = 0;
  let enough = { probes: 1, recall: await recallOf(1) };
  while (enough.recall < wanted && enough.probes < lists) {
    tooFew = enough.probes;
    const probes = Math.min(lists, 2 * tooFew);
    enough = { probes, recall: await recallOf(probes) };
  }
  while (enough.probes - tooFew > Math.max(1, NEAR * enough.probes)) {
    const probes = Math.floor((tooFew + enough.probes) / 2);
    const recall = await recallOf(probes);
    if (recall >= wanted) enough = { probes, recall };
    else tooFew = probes;
  }
  return enough;
}

/** Users, or items for similar items, evenly spaced. */
function sampledQueries(served: ServedModel, kind: IndexKind): Float32Array[] {
  const { factors, rank } = served;
  const values = kind === 'recommend' ? factors.userFactors : factors.itemFactors;
  const rows = values.length / factors.rank;
  return Array.from({ length: Math.min(QUERIES, rows) }, (_, i) => {
    const at = Math.floor((i * rows) / Math.min(QUERIES, rows)) * factors.rank;
    return kind === 'recommend' ? values.slice(at, at + factors.rank) : unitVector(values, at, rank);
  });
}

/** The indexes of a model: built, or in files of its folder, which are read when they are first used. */
export class ItemIndexes implements UsedIndexes {
  readonly #factors: Pick<FactorModel, 'items' | 'itemFactors'>;
  readonly #heads = new Map<IndexKind, IndexHeader>();
  readonly #files = new Map<IndexKind, string>();
  readonly #built = new Map<IndexKind, StoredIndex>();
  #checksum: Promise<number> | undefined;

  constructor(factors: Pick<FactorModel, 'items' | 'itemFactors'>, heads: readonly IndexHead[] = []) {
    this.#factors = factors;
    for (const { file, header } of heads) {
      this.#heads.set(header.kind, header);
      this.#files.set(header.kind, file);
    }
  }

  head(kind: IndexKind): IndexHeader | undefined {
    return this.#heads.get(kind);
  }

  get kinds(): readonly IndexKind[] {
    return [...this.#heads.keys()];
  }

  /** CRC-32 of the item factors, which an index names. */
  checksum(): Promise<number> {
    return (this.#checksum ??= factorsChecksum(this.#factors.itemFactors));
  }

  set(index: StoredIndex): void {
    const { kind } = index.header;
    this.#heads.set(kind, index.header);
    this.#built.set(kind, index);
  }

  /**
   * The index of a kind. Searches copy it once, so an index in a file is not kept: each call reads it. Throws
   * DataError if the file is damaged, or of another model.
   */
  async stored(kind: IndexKind): Promise<StoredIndex> {
    const built = this.#built.get(kind);
    if (built !== undefined) return built;
    const file = this.#files.get(kind);
    if (file === undefined) throw missingIndex(kind);
    return readIndex(file, () => this.checksum());
  }

  /** The number of lists to search; undefined for an exact search. Throws UsageError without an index. */
  probes(kind: IndexKind, use: IndexUse = 'auto'): number | undefined {
    return probesOf(this.#heads.get(kind), kind, use, keyCount(this.#factors.items));
  }
}

/** The parts of a model that the methods for recommendations use. */
export interface ServedModel extends RequestedModel {
  readonly session: RunSession;
  readonly indexes: ItemIndexes;
}
