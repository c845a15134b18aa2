import { UsageError } from '../../engine/errors.ts';
import { findId, type Id } from '../../engine/keys/find-id.ts';
import { checkSimilarity } from '../../operators/serving/similarity.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { shown } from '../../engine/shown.ts';
import type { Found } from '../../operators/serving/search.ts';
import type { RunOptions } from '../run-session.ts';
import { checkCount, checkedId } from './request-options.ts';
import { idsOf, type RequestedModel } from './served-model.ts';
import { searchSimilar, type SimilarOptions, similarProbes } from './search-similar.ts';
import { checkNames, nameOf } from './item-name.ts';

/** Options of `Model.similar`. */
export interface SimilarTo extends SimilarOptions, RunOptions {
  /** The side of the id: 'item' (default) or 'user'. */
  readonly side?: 'item' | 'user';
}

/** The rows most similar to one item or user, best first. */
export interface SimilarRows {
  readonly id: Id;
  /** `name` if the option `names` has one. */
  readonly similar: readonly { readonly id: Id; readonly similarity: number; readonly name?: string }[];
}

/** See Model.similar. */
export async function findSimilar(
  served: RequestedModel,
  id: Id,
  n: number,
  options: SimilarTo,
): Promise<SimilarRows> {
  checkOptions(
    'similar',
    options,
    ['similarity', 'names', 'side', 'index', ...runOptionNames],
    "{ side: 'user' }",
  );
  const { side = 'item', names, signal, onEvent } = options;
  checkNames('similar', names);
  if (side !== 'item' && side !== 'user')
    throw new UsageError(`side must be item or user, got ${shown(side)}`);
  checkCount(n);
  served.searches.requireOpen();
  const similarity = checkSimilarity(options.similarity ?? 'cosine');
  const position = findId(served.factors[`${side}s`], checkedId('similar', id));
  if (position < 0) throw new UsageError(`the model has no ${side} ${String(id)}`);
  const probes = similarProbes(served, 'similar', side, similarity, options.index);
  const search = { side, position, n, similarity, probes };
  const found = await searchSimilar(served, search, { signal, onEvent });
  return similarTo(served, { side, position, names }, found);
}

/** The found rows as the response for the row at a position. */
export function similarTo(
  served: RequestedModel,
  {
    side,
    position,
    names,
  }: Pick<SimilarTo, 'names'> & {
    readonly side: 'item' | 'user';
    readonly position: number;
  },
  found: Found,
): SimilarRows {
  const ids = idsOf(served, side);
  return {
    id: ids.at(position),
    similar: found.positions.map((at, rank) => ({
      id: ids.at(at),
      similarity: found.scores[rank],
      ...(side === 'item' ? nameOf(names, ids.key(at)) : {}),
    })),
  };
}
