import type { IndexKind } from '../../connectors/model/index-layout.ts';
import { UsageError } from '../../engine/errors.ts';
import type { Found } from '../../operators/serving/search.ts';
import { type Similarity, unitVector } from '../../operators/serving/similar.ts';
import type { RunOptions } from '../run-session.ts';
import { checkIndexUse, type IndexOption, type IndexUse } from './index-use.ts';
import type { NameOptions } from './request-options.ts';
import { searchIndexed } from './search-indexed.ts';
import { type RequestedModel, similarSpace } from './served-model.ts';

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
