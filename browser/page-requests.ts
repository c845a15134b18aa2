import {
  givenUser,
  type RatedItem,
  recommendFromRatings,
  requestRatings,
} from '../api/serving/fold-in-request.ts';
import {
  checkNames,
  checkCount,
  checkIds,
  recommendToUser,
  type RequestOptions,
  type UserRecommendations,
} from '../api/serving/request.ts';
import {
  checkIndexUse,
  type IndexUse,
  idsOf,
  type RequestedModel,
  ruleOf,
} from '../api/serving/served-model.ts';
import {
  findSimilar,
  noItems,
  type SimilarItems,
  similarItemsTo,
  similarProbes,
  type SimilarTo,
} from '../api/serving/similar-to.ts';
import { UsageError } from '../engine/errors.ts';
import { findId, type Id } from '../engine/keys/find-id.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { chooseItems } from '../operators/serving/choose-items.ts';
import { checkSimilarity } from '../operators/serving/similar.ts';
import type { PageDeviceName } from './device-choice.ts';
import type { GpuSearches } from './gpu-searches.ts';
import type { ModelGpu } from './model-gpu.ts';

/** The items of a model in a page, and the GPU that may search them. */
export interface SearchedModel {
  readonly served: RequestedModel;
  readonly gpu: ModelGpu;
}

/** Visitors by their ratings. */
export type Visitors = readonly { readonly ratings: readonly RatedItem[] }[];

/** Throws UsageError unless the option index agrees with the device. */
export function checkIndexDevice(method: string, use: IndexUse | undefined, device: PageDeviceName): void {
  checkIndexUse(method, use);
  if (device === 'gpu' && use !== undefined && use !== 'auto' && use !== false)
    throw new UsageError(`${method} searches an index on the processor, and device is 'gpu'`, {
      advice: 'Leave one of the options index and device out',
    });
}

/** The lists of all visitors, in their order. The options have been checked. */
export function recommendToVisitors(
  { served, gpu }: SearchedModel,
  visitors: Visitors,
  n: number,
  { device, ...options }: RequestOptions & { readonly device: PageDeviceName },
): Promise<UserRecommendations[]> {
  const { items, rank } = served.factors;
  const onCpu = async () => {
    const lists: UserRecommendations[] = [];
    for (const visitor of visitors) lists.push(await recommendFromRatings(served, visitor, n, options));
    return lists;
  };
  if (device === 'auto' && served.indexes.probes('recommend', options.index) !== undefined) return onCpu();
  const onGpu = (searches: GpuSearches) => recommendOnGpu({ served, searches }, visitors, n, options);
  return gpu.run(device, { users: visitors.length, items: keyCount(items), rank }, { onCpu, onGpu }, options);
}

async function recommendOnGpu(
  { served, searches }: { readonly served: RequestedModel; readonly searches: GpuSearches },
  visitors: Visitors,
  n: number,
  options: RequestOptions,
): Promise<UserRecommendations[]> {
  const rule = ruleOf(served, options.regParam);
  const rated = visitors.map((visitor) => requestRatings(served, rule, visitor));
  const known = rated.filter(({ items }) => items.length > 0);
  const chosen = chooseItems(served.factors.items, options, served.itemCounts);
  const lists =
    known.length === 0 ? [] : await searches.recommend({ visitors: known, rule, chosen, n }, options);
  const ids = idsOf(served, 'item');
  let next = 0;
  return Promise.all(
    rated.map(async ({ items, unknownItems: unknown }) => {
      const unknownItems = chosen.unknown + unknown;
      if (items.length > 0) return givenUser(lists[next++], n, { ids, names: options.names, unknownItems });
      return { ...(await recommendToUser(served, undefined, n, options)), unknownItems };
    }),
  );
}

/** The items most similar to each of these items, in their order. The options have known names. */
export async function similarToItems(
  { served, gpu }: SearchedModel,
  method: string,
  ids: readonly Id[],
  n: number,
  { device, ...options }: SimilarTo & { readonly device: PageDeviceName },
): Promise<SimilarItems[]> {
  const { factors, rank, searches } = served;
  checkNames(method, options.names);
  checkIds(method, ids);
  checkCount(n);
  searches.requireOpen();
  const similarity = checkSimilarity(options.similarity ?? 'cosine');
  const onCpu = async () => {
    const rows: SimilarItems[] = [];
    for (const id of ids)
      rows.push((await findSimilar(served, id, n, { ...options, side: 'item' })) as SimilarItems);
    return rows;
  };
  if (device === 'auto' && similarProbes(served, method, 'item', similarity, options.index) !== undefined)
    return onCpu();
  const asked = ids.map((id) => ({ id, position: findId(factors.items, id) }));
  const positions = Uint32Array.from(asked.flatMap(({ position }) => (position < 0 ? [] : [position])));
  const onGpu = async (found: GpuSearches) => {
    const lists = (await found.similar({ positions, similarity, n }, options)).values();
    return asked.map(({ id, position }) => {
      const list = position < 0 ? undefined : lists.next().value;
      return list === undefined ? noItems(id) : similarItemsTo(served, position, list, options.names);
    });
  };
  return gpu.run(
    device,
    { users: ids.length, items: keyCount(factors.items), rank },
    { onCpu, onGpu },
    options,
  );
}
