import { UsageError } from '../../engine/errors.ts';
import { findId, findIds, type Id } from '../../engine/keys/find-id.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { Recommend } from '../../operators/serving/recommend.ts';
import { RecommendFew } from '../../operators/serving/recommend-few.ts';
import {
  checkSimilarity,
  type Similarity,
  similarityModel,
  withoutThemselves,
} from '../../operators/serving/similar.ts';
import type { Found } from '../../operators/serving/search.ts';
import { unitVector } from '../../operators/serving/unit-vector.ts';
import type { IndexKind } from '../../connectors/model/item-index-file.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { RecommendInLists } from '../../operators/serving/lists/recommend-in-lists.ts';
import { checkOptions } from '../check-options.ts';
import type { RunOptions } from '../run-session.ts';
import { type Dataset, datasetOf } from '../dataset.ts';
import { checkCount, checkIds, type NameOptions } from './recommend-options.ts';
import { checkIndexUse, type IndexOption, type IndexUse } from './item-indexes.ts';
import { placedIndex, searchIndexed } from './search-indexed.ts';
import { type ServedModel, similarSpace } from './served-model.ts';
import { checkNames, withNames } from './with-names.ts';

export interface SimilarOptions extends NameOptions, IndexOption {
  /** 'cosine' (default) or 'dot'. Both ignore biases. */
  readonly similarity?: Similarity;
}

/** At most this number of rows is searched one by one, with an index. */
const FEW = 256;

/** The rows of one side (users or items) for which similar rows are requested. */
interface SimilarSearch {
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
  { indexes }: ServedModel,
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
function indexKindOf(similarity: Similarity): IndexKind {
  return similarity === 'cosine' ? 'similar' : 'recommend';
}

/** See Model.similarItems. */
export function similarRows(
  served: ServedModel,
  side: 'user' | 'item',
  ids: readonly Id[] | 'all',
  n: number,
  options: SimilarOptions,
): Dataset {
  const method = side === 'item' ? 'similarItems' : 'similarUsers';
  checkOptions(method, options, ['similarity', 'names', 'index'], "{ similarity: 'dot' }");
  checkNames(method, options.names);
  if (side === 'user' && options.names !== undefined)
    throw new UsageError('the option names of similarUsers cannot be used: users have no names', {
      advice: 'Leave it out',
    });
  checkCount(n);
  const similarity = checkSimilarity(options.similarity ?? 'cosine');
  served.searches.requireOpen();
  if (ids !== 'all') checkIds(method, ids);
  const positions = positionsOf(sideOf(served, side).keys, side, ids);
  const probes = similarProbes(served, method, side, similarity, options.index);
  const search = { side, positions, n, similarity, probes };
  const isMany = ids === 'all' || positions.length > FEW;
  const source = isMany ? searchOfAll(served, search) : searchOfFew(served, search);
  return withNames(datasetOf(served.session, source), options.names, columnsOf(served, side).item);
}

export function sideOf({ factors }: ServedModel, side: 'user' | 'item') {
  return side === 'item'
    ? { keys: factors.items, values: factors.itemFactors }
    : { keys: factors.users, values: factors.userFactors };
}

/** Positions of the ids, in the given order. Throws UsageError for an unknown id. */
function positionsOf(keys: KeyColumn, side: string, ids: readonly Id[] | 'all'): Uint32Array {
  if (ids === 'all') return Uint32Array.from({ length: keyCount(keys) }, (_, position) => position);
  const missing = ids.find((id) => findId(keys, id) < 0);
  if (missing !== undefined) throw new UsageError(`the model has no ${side} ${String(missing)}`);
  return findIds(keys, ids).positions;
}

function columnsOf({ columns }: ServedModel, side: 'user' | 'item') {
  const name = columns[side];
  return {
    user: name,
    item: `similar${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    prediction: 'similarity',
  };
}

/** Searches for many rows in tasks of the session's device. */
function searchOfAll(served: ServedModel, { side, positions, n, similarity, probes }: SimilarSearch): Source {
  const { factors, rank } = served;
  const { keys, values } = sideOf(served, side);
  const columns = columnsOf(served, side);
  const settings = { n, columns, exclude: withoutThemselves, unit: `${side}s` };
  if (probes !== undefined) {
    const kind = indexKindOf(similarity);
    const queries = similarQueries(served, positions, similarity);
    const place = (ctx: ExecutionContext) => placedIndex(served, kind, ctx);
    return new RecommendInLists(queries, { ...settings, probes, place });
  }
  const model = similarityModel({
    ids: keys,
    factors: values,
    rank: factors.rank,
    features: rank,
    positions,
    similarity,
  });
  return new Recommend(model, settings);
}

/** The rows of items as queries of the index of that similarity. */
function similarQueries({ factors, rank }: ServedModel, positions: Uint32Array, similarity: Similarity) {
  const width = similarity === 'cosine' ? rank : factors.rank;
  const userFactors = sharedArray(Float32Array, positions.length * width);
  positions.forEach((position, row) =>
    userFactors.set(queryOf(factors.itemFactors, position * factors.rank, rank, similarity), row * width),
  );
  return { users: takeKeys(factors.items, positions), items: factors.items, userFactors, rank: width };
}

function queryOf(values: Float32Array, at: number, rank: number, similarity: Similarity): Float32Array {
  return similarity === 'cosine' ? unitVector(values, at, rank) : values.subarray(at, at + rank);
}

/** The rows most similar to the row at a position, without that row; searched in a request thread. */
export function searchSimilar(
  served: ServedModel,
  { side, position, n, similarity, probes }: Omit<SimilarSearch, 'positions'> & { readonly position: number },
  options: RunOptions,
): Promise<Found> {
  const { factors, rank, searches } = served;
  const { values } = sideOf(served, side);
  const { name, space } = similarSpace(served, side, similarity === 'cosine');
  const query = queryOf(values, position * factors.rank, rank, similarity);
  const request = { query, n, left: [position] };
  return probes === undefined
    ? searches.search(name, space, request, options)
    : searchIndexed(served, indexKindOf(similarity), probes, request, options);
}

/** Searches for rows one by one, in the request threads. */
function searchOfFew(served: ServedModel, { positions, ...search }: SimilarSearch): RecommendFew {
  const { side, n } = search;
  const { keys } = sideOf(served, side);
  const find = (row: number, { signal, events }: ExecutionContext) =>
    searchSimilar(served, { ...search, position: positions[row] }, { signal, onEvent: events });
  const columns = columnsOf(served, side);
  return new RecommendFew({ users: takeKeys(keys, positions), items: keys }, { n, columns, find });
}
