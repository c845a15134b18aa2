import { UsageError } from '../../engine/errors.ts';
import { findId, findIds, type Id } from '../../engine/keys/find-id.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { Recommend } from '../../operators/serving/recommend.ts';
import { RecommendFew } from '../../operators/serving/recommend-few.ts';
import {
  checkSimilarity,
  type Similarity,
  similarityModel,
  withoutThemselves,
} from '../../operators/serving/similar.ts';
import { unitVector } from '../../operators/serving/unit-vector.ts';
import { checkOptions } from '../check-options.ts';
import { type Dataset, datasetOf } from '../dataset.ts';
import { checkCount, checkIds, type NameOptions } from './recommend-options.ts';
import { type ServedModel, similarSpace } from './served-model.ts';
import { checkNames, withNames } from './with-names.ts';

export interface SimilarOptions extends NameOptions {
  /** 'cosine' (default) or 'dot'. Biases are left out of both. */
  readonly similarity?: Similarity;
}

/** Rows that are searched for one by one. */
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
  checkOptions(method, options, ['similarity', 'names'], "{ similarity: 'dot' }");
  checkNames(method, options.names);
  if (side === 'user' && options.names !== undefined)
    throw new UsageError('the option names of similarUsers cannot act: users have no names', {
      advice: 'Leave it out',
    });
  checkCount(n);
  const similarity = checkSimilarity(options.similarity ?? 'cosine');
  const { factors, rank, session, searches } = served;
  searches.requireOpen();
  const [keys, values] =
    side === 'item' ? [factors.items, factors.itemFactors] : [factors.users, factors.userFactors];
  const name = served.columns[side];
  const columns = {
    user: name,
    item: `similar${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    prediction: 'similarity',
  };
  if (ids !== 'all') checkIds(method, ids);
  const positions =
    ids === 'all'
      ? Uint32Array.from({ length: keyCount(keys) }, (_, position) => position)
      : findIds(keys, ids).positions;
  const missing = ids === 'all' ? undefined : ids.find((id) => findId(keys, id) < 0);
  if (missing !== undefined) throw new UsageError(`the model has no ${side} ${String(missing)}`);
  if (ids === 'all' || positions.length > FEW) {
    const model = similarityModel({
      ids: keys,
      factors: values,
      rank: factors.rank,
      features: rank,
      positions,
      similarity,
    });
    const all = new Recommend(model, { n, columns, exclude: withoutThemselves, unit: `${side}s` });
    return withNames(datasetOf(session, all), options.names, columns.item);
  }
  const space = similarSpace(served, side, similarity === 'cosine');
  const find = (row: number, { signal, events }: ExecutionContext) => {
    const at = positions[row] * factors.rank;
    const query = similarity === 'cosine' ? unitVector(values, at, rank) : values.subarray(at, at + rank);
    return searches.search(
      space.name,
      space.space,
      { query, n, left: [positions[row]] },
      { signal, onEvent: events },
    );
  };
  return withNames(
    datasetOf(
      session,
      new RecommendFew({ users: takeKeys(keys, positions), items: keys }, { n, columns, find }),
    ),
    options.names,
    columns.item,
  );
}
