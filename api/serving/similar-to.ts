import { UsageError } from '../../engine/errors.ts';
import { findId, type Id } from '../../engine/keys/find-id.ts';
import { checkSimilarity } from '../../operators/serving/similar.ts';
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
