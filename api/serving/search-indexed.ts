import type { IndexKind } from '../../connectors/model/index-layout.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ChosenItems } from '../../operators/serving/choose-items.ts';
import type { PlacedLists } from '../../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest, SearchSpace } from '../../operators/serving/search.ts';
import type { RunOptions } from '../run-session.ts';
import { listIndexOf } from './index-use.ts';
import { type RequestedModel, sideSpace, similarSpace } from './served-model.ts';

/** The vectors that an index of a kind has. */
export function indexSpace(served: RequestedModel, kind: IndexKind): SearchSpace {
  return (kind === 'recommend' ? sideSpace(served, 'item') : similarSpace(served, 'item', true)).space();
}

/** Reads an index, if it is in a file, and copies it to the request threads, once. */
export function preparedIndex(served: RequestedModel, kind: IndexKind): Promise<PlacedLists> {
  return served.searches.prepareLists(
    kind,
    async () => listIndexOf(await served.indexes.stored(kind)),
    () => indexSpace(served, kind),
  );
}

/** The index with a context of the request threads, for work of `ctx`. */
export async function placedIndex(
  served: RequestedModel,
  kind: IndexKind,
  { signal, events }: Pick<ExecutionContext, 'signal' | 'events'>,
) {
  const placed = await preparedIndex(served, kind);
  return { placed, ctx: served.session.requestContext({ signal, onEvent: events }) };
}

/** Searches `probes` lists of an index for one query. */
export async function searchIndexed(
  served: RequestedModel,
  kind: IndexKind,
  probes: number,
  request: SearchRequest,
  options: RunOptions,
): Promise<Found> {
  if (served.indexes.search) return served.indexes.search(kind, probes, request, options);
  await preparedIndex(served, kind);
  return served.searches.searchLists(kind, probes, request, options);
}

/** 1 for each item that may be found; undefined if all may. */
export function maskOf(items: number, { denied, allowed }: ChosenItems): Uint8Array | undefined {
  if (denied.length === 0 && allowed === undefined) return undefined;
  const mask = sharedArray(Uint8Array, items);
  if (allowed === undefined) mask.fill(1);
  else for (const item of allowed) mask[item] = 1;
  for (const item of denied) mask[item] = 0;
  return mask;
}
