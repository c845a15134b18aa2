import type { IndexKind } from '../../connectors/model/index-layout.ts';
import { UsageError } from '../../engine/errors.ts';
import { findId, type Id } from '../../engine/keys/find-id.ts';
import type { Found } from '../../operators/serving/search.ts';
import { type Similarity, unitVector } from '../../operators/serving/similar.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import type { RunOptions } from '../run-session.ts';
import { checkNames, nameOf, checkCount, checkedId, type NameOptions } from './request.ts';
import {
  checkIndexUse,
  type IndexOption,
  type IndexUse,
  idsOf,
  type RequestedModel,
  searchIndexed,
  similarSpace,
} from './served-model.ts';
import { similarParams, sideParam } from '../option-params.ts';

/** Options of `Model.similar`. */
export interface SimilarTo extends SimilarOptions, RunOptions {
  /** The side of the id: 'item' (default) or 'user'. */
  readonly side?: 'item' | 'user';
}

/** The items most similar to one item, best first. */
export interface SimilarItems {
  readonly item: Id;
  /** False if the model does not know the item: then no item is similar. */
  readonly known: boolean;
  /** `name` if the option `names` has one. */
  readonly similar: readonly { readonly item: Id; readonly similarity: number; readonly name?: string }[];
}

/** The users most similar to one user, best first. */
export interface SimilarUsers {
  readonly user: Id;
  /** False if the model does not know the user: then no user is similar. */
  readonly known: boolean;
  readonly similar: readonly { readonly user: Id; readonly similarity: number }[];
}

/** See Model.similar. */
export async function findSimilar(
  served: RequestedModel,
  id: Id,
  n: number,
  options: SimilarTo,
): Promise<SimilarItems | SimilarUsers> {
  checkOptions('similar', options, ['names', 'index', ...runOptionNames], "{ side: 'user' }", {
    ...similarParams,
    side: sideParam,
  });
  const { side = 'item', names, signal, onEvent } = options;
  checkNames('similar', names);
  checkCount(n);
  served.searches.requireOpen();
  const { similarity = 'cosine' } = options;
  const position = findId(served.factors[`${side}s`], checkedId('similar', id));
  const probes = similarProbes(served, 'similar', side, similarity, options.index);
  if (position < 0) return side === 'item' ? noItems(id) : { user: id, known: false, similar: [] };
  const search = { side, position, n, similarity, probes };
  const found = await searchSimilar(served, search, { signal, onEvent });
  if (side === 'item') return similarItemsTo(served, position, found, names);
  const users = idsOf(served, 'user');
  const similar = found.positions.map((at, rank) => ({ user: users.at(at), similarity: found.scores[rank] }));
  return { user: users.at(position), known: true, similar };
}

/** The response for an item that the model does not know. */
export function noItems(item: Id): SimilarItems {
  return { item, known: false, similar: [] };
}

/** The found items as the response for the item at a position. */
export function similarItemsTo(
  served: RequestedModel,
  position: number,
  found: Found,
  names: SimilarTo['names'],
): SimilarItems {
  const ids = idsOf(served, 'item');
  return {
    item: ids.at(position),
    known: true,
    similar: found.positions.map((at, rank) => ({
      item: ids.at(at),
      similarity: found.scores[rank],
      ...nameOf(names, ids.key(at)),
    })),
  };
}

export interface SimilarOptions extends NameOptions, IndexOption {
  /** 'cosine' (default) or 'dot'. Both ignore biases. */
  readonly similarity?: Similarity;
}

/** The rows of one side (users or items) for which similar rows are requested. */
export interface SimilarSearch {
  readonly side: 'user' | 'item';
  readonly positions: Uint32Array;
  readonly n: number;
  readonly similarity: Similarity;
  /** Number of lists of the index to search; undefined for an exact search. */
  readonly probes: number | undefined;
}

/**
 * The number of lists to search; undefined for an exact search. Throws UsageError for a search that has no
 * index: of users.
 */
export function similarProbes(
  { indexes }: RequestedModel,
  method: string,
  side: 'user' | 'item',
  similarity: Similarity,
  use: IndexUse | undefined,
): number | undefined {
  checkIndexUse(method, use);
  if (side === 'item') return indexes.probes(indexKindOf(similarity), use);
  if (use === undefined || use === 'auto' || use === false) return undefined;
  throw new UsageError(`the option index of ${method} acts only on items`, { advice: 'Leave it out' });
}

/** Products of items are searched in the index for users: the items' biases are multiplied by 0. */
export function indexKindOf(similarity: Similarity): IndexKind {
  return similarity === 'cosine' ? 'similar' : 'recommend';
}

export function sideOf({ factors }: Pick<RequestedModel, 'factors'>, side: 'user' | 'item') {
  return side === 'item'
    ? { keys: factors.items, values: factors.itemFactors }
    : { keys: factors.users, values: factors.userFactors };
}

async function rowOf(
  { factors, session, remoteItems }: RequestedModel,
  side: 'user' | 'item',
  position: number,
  options: RunOptions,
): Promise<Float32Array> {
  const { rank } = factors;
  if (side === 'item' && remoteItems) {
    const { signal } = session.requestContext(options);
    return remoteItems.read(Uint32Array.of(position), { first: 0, count: rank }, signal);
  }
  return sideOf({ factors }, side).values.subarray(position * rank, (position + 1) * rank);
}

/** The query for the rows most similar to the row that begins at a number. */
export function queryOf(
  values: Float32Array,
  at: number,
  rank: number,
  similarity: Similarity,
): Float32Array {
  return similarity === 'cosine' ? unitVector(values, at, rank) : values.subarray(at, at + rank);
}

/** The rows most similar to the row at a position, without that row; searched in a request thread. */
export async function searchSimilar(
  served: RequestedModel,
  { side, position, n, similarity, probes }: Omit<SimilarSearch, 'positions'> & { readonly position: number },
  options: RunOptions,
): Promise<Found> {
  const { rank, searches } = served;
  const { name, space } = similarSpace(served, side, similarity === 'cosine');
  const row = await rowOf(served, side, position, options);
  const query = queryOf(row, 0, rank, similarity);
  const request = { query, n, left: [position] };
  return probes === undefined
    ? searches.search(name, space, request, options)
    : searchIndexed(served, indexKindOf(similarity), probes, request, options);
}
