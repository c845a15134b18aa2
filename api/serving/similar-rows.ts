import { UsageError } from '../../engine/errors.ts';
import { findIds, type Id } from '../../engine/keys/find-id.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { RecommendInLists } from '../../operators/serving/lists/recommend-in-lists.ts';
import { Recommend, RecommendFew } from '../../operators/serving/recommend.ts';
import {
  checkSimilarity,
  type Similarity,
  similarityModel,
  withoutThemselves,
} from '../../operators/serving/similar.ts';
import { checkOptions } from '../check-options.ts';
import { type Dataset, datasetOf } from '../dataset.ts';
import { checkNames } from './item-name.ts';
import { withNames } from './name-columns.ts';
import { reportUnknown } from './recommend-datasets.ts';
import { checkCount, checkIds } from './request.ts';
import { placedIndex, type ServedModel } from './served-model.ts';
import {
  indexKindOf,
  queryOf,
  searchSimilar,
  sideOf,
  type SimilarOptions,
  similarProbes,
  type SimilarSearch,
} from './similar-to.ts';

/** At most this number of rows is searched one by one, with an index. */
const FEW = 256;

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
  const { keys } = sideOf(served, side);
  const { positions, unknown } =
    ids === 'all' ? { positions: rowsOf(keyCount(keys)), unknown: 0 } : findIds(keys, ids);
  const probes = similarProbes(served, method, side, similarity, options.index);
  const asked = { all: ids.length, unknown };
  const onEnd = (_short: number, ctx: ExecutionContext) =>
    reportUnknown(asked, side, `no similar ${side}s`, ctx);
  const search = { side, positions, n, similarity, probes, onEnd };
  const isMany = ids === 'all' || positions.length > FEW;
  const source = isMany ? searchOfAll(served, search) : searchOfFew(served, search);
  return withNames(datasetOf(served.session, source), options.names, columnsOf(served, side).item);
}

const rowsOf = (count: number) => Uint32Array.from({ length: count }, (_, row) => row);

interface RowsSearch extends SimilarSearch {
  readonly onEnd: (short: number, ctx: ExecutionContext) => void;
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
function searchOfAll(
  served: ServedModel,
  { side, positions, n, similarity, probes, onEnd }: RowsSearch,
): Source {
  const { factors, rank } = served;
  const { keys, values } = sideOf(served, side);
  const columns = columnsOf(served, side);
  const settings = { n, columns, exclude: withoutThemselves, unit: `${side}s`, onEnd };
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

/** Searches for rows one by one, in the request threads. */
function searchOfFew(served: ServedModel, { positions, onEnd, ...search }: RowsSearch): RecommendFew {
  const { side, n } = search;
  const { keys } = sideOf(served, side);
  const find = (row: number, { signal, events }: ExecutionContext) =>
    searchSimilar(served, { ...search, position: positions[row] }, { signal, onEvent: events });
  const columns = columnsOf(served, side);
  return new RecommendFew({ users: takeKeys(keys, positions), items: keys }, { n, columns, find, onEnd });
}
