import type { IndexHeader, IndexKind } from '../../connectors/model/index-layout.ts';
import { indexKinds, type StoredIndex, writeIndex } from '../../connectors/model/item-index-file.ts';
import { readModelHead } from '../../connectors/model/model-store.ts';
import { UsageError } from '../../engine/errors.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { followed } from '../../engine/run/context.ts';
import { shown } from '../../engine/shown.ts';
import { unobservedWeight } from '../../operators/serving/fold-in/row-rule.ts';
import { gramOfItems } from '../../operators/serving/fold-in/solve-users.ts';
import { buildLists, defaultLists, queryWeights } from '../../operators/serving/lists/build-lists.ts';
import { listBytes, listsOf } from '../../operators/serving/lists/list-index.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import type { RunOptions } from '../run-session.ts';
import { listIndexOf } from './index-use.ts';
import { indexSpace } from './search-indexed.ts';
import type { ServedModel } from './served-model.ts';
import { tuneIndex } from './tune-index.ts';

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
  checkOptions(
    'buildIndex',
    options,
    ['lists', 'seed', 'searches', 'recall', ...runOptionNames],
    '{ lists: 4000 }',
  );
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

async function buildOne(
  served: ServedModel,
  kind: IndexKind,
  options: BuildIndexOptions,
): Promise<BuiltIndex> {
  const start = performance.now();
  const { factors, session, indexes, searches } = served;
  const items = keyCount(factors.items);
  const { seed, recall, lists } = checked(options, items);
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
    await searches.replaceLists(kind, listIndexOf(stored), space);
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
async function storedGram({ factors, metadata, searches }: ServedModel) {
  const unobserved = unobservedWeight(metadata);
  if (unobserved === undefined) return undefined;
  return { unobserved, values: await searches.gram((ctx) => gramOfItems(factors, unobserved, ctx)) };
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

function checked({ lists, seed = 0, recall = 0.97 }: BuildIndexOptions, items: number) {
  const most = Math.max(1, Math.min(items, 1 << 16));
  if (lists !== undefined && !(Number.isInteger(lists) && lists >= 1 && lists <= most))
    throw new UsageError(`lists must be a whole number from 1 to ${most}, got ${shown(lists)}`);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new UsageError(`seed must be a whole number from 0, got ${shown(seed)}`);
  if (!(typeof recall === 'number' && recall > 0 && recall <= 1))
    throw new UsageError(`recall must be above 0 and at most 1, got ${shown(recall)}`);
  return { seed, recall, lists: lists ?? Math.min(most, defaultLists(items)) };
}
