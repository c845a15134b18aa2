import type { IndexKind } from '../../connectors/model/index-layout.ts';
import type { JsonObject } from '../../engine/json.ts';
import { findId, type Id } from '../../engine/keys/find-id.ts';
import { type IdForm, type IdValues, idValues } from '../../engine/keys/id-form.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ChosenItems } from '../../operators/serving/choose-items.ts';
import { type FactorModel, type ItemRows, rowsInMemory } from '../../operators/serving/factor-model.ts';
import { type UserRule, userRule } from '../../operators/serving/fold-in/row-rule.ts';
import type { PlacedLists } from '../../operators/serving/lists/list-index.ts';
import type { Found, SearchRequest, SearchSpace } from '../../operators/serving/search.ts';
import type { RequestSession, RunOptions, RunSession } from '../run-session.ts';
import { listIndexOf, type UsedIndexes } from './index-use.ts';
import type { ItemIndexes } from './item-indexes.ts';
import type { Searches } from './searches.ts';

/** The parts of a model that requests for single users and items use. */
export interface RequestedModel {
  readonly factors: FactorModel;
  /** f: features without biases. */
  readonly rank: number;
  /** Number of ratings of each item, by position; undefined if the model does not contain them. */
  readonly itemCounts: Uint32Array | undefined;
  readonly columns: {
    readonly user: string;
    readonly item: string;
    readonly rating: string;
    readonly prediction: string;
  };
  readonly session: RequestSession;
  readonly searches: Searches;
  /** Indexes of the items in lists, for large catalogues. */
  readonly indexes: UsedIndexes;
  /** Facts about the training, from the model's metadata. */
  readonly metadata: JsonObject;
  /** The item factors, if `factors.itemFactors` cannot be read yet: they are in a file on a server. */
  readonly remoteItems?: RemoteItems;
}

/** Item factors that are read as requests need them. */
export interface RemoteItems extends ItemRows {
  /** The matrix of gramOfItems. */
  gram(unobserved: number, ctx: ExecutionContext): Promise<Float32Array>;
}

/** Reads rows of the item factors. */
export function itemRowsOf({ factors, remoteItems }: RequestedModel): ItemRows {
  return remoteItems ?? rowsInMemory(factors);
}

/** The parts of a model that the methods for recommendations use. */
export interface ServedModel extends RequestedModel {
  readonly session: RunSession;
  readonly indexes: ItemIndexes;
}

/**
 * The ids of users or items in the form of the session's option `ids`. Throws UsageError if that form is
 * `number` and an id is not a safe integer.
 */
export function idsOf(
  { factors, session }: Pick<RequestedModel, 'factors' | 'session'>,
  side: 'user' | 'item',
): IdValues {
  return idValues(factors[`${side}s`], session.ids, side);
}

export function idFormsOf(
  served: Pick<RequestedModel, 'factors' | 'session'>,
): Readonly<Record<'user' | 'item', IdForm>> {
  return { user: idsOf(served, 'user').form, item: idsOf(served, 'item').form };
}

/**
 * The rule (see UserRule) by which new users are solved. Throws UsageError for a closed model, and if λ is
 * neither given nor in the model.
 */
export function ruleOf({ factors, rank, metadata, searches }: RequestedModel, regParam?: number): UserRule {
  searches.requireOpen();
  return userRule(metadata, rank, () => meanOfColumn(factors.userFactors, factors.rank, rank), regParam);
}

function meanOfColumn(values: Float32Array, width: number, column: number): number {
  let sum = 0;
  for (let at = column; at < values.length; at += width) sum += values[at];
  return sum / Math.max(1, values.length / width);
}

/** x_uᵀθ_v, summed in float64, for positions of the model. */
export function scoreOf(
  { factors: { rank, userFactors, itemFactors } }: RequestedModel,
  user: number,
  item: number,
): number {
  let sum = 0;
  for (let k = 0; k < rank; k++) sum += userFactors[user * rank + k] * itemFactors[item * rank + k];
  return sum;
}

/** x_uᵀθ_v for ids; undefined if the model does not know one of them. Throws UsageError if it is closed. */
export function scoreOfPair(served: RequestedModel, user: Id, item: Id): number | undefined {
  served.searches.requireOpen();
  const at = [findId(served.factors.users, user), findId(served.factors.items, item)] as const;
  return at[0] < 0 || at[1] < 0 ? undefined : scoreOf(served, ...at);
}

/** The vectors to search, under the name of their index. */
export interface NamedSpace {
  readonly name: string;
  readonly space: () => SearchSpace;
}

/**
 * The factors of all items, or of all users. The product of a query of the other side with one of them is a
 * prediction.
 */
export function sideSpace({ factors }: RequestedModel, side: 'user' | 'item'): NamedSpace {
  const { rank } = factors;
  return {
    name: side,
    space: () => ({
      vectors: side === 'item' ? factors.itemFactors : factors.userFactors,
      width: rank,
      rank,
      normalized: false,
    }),
  };
}

/** The factors of one side without biases, for comparing its rows with each other. */
export function similarSpace(
  { factors, rank }: RequestedModel,
  side: 'user' | 'item',
  cosine: boolean,
): NamedSpace {
  return {
    name: `${side} ${cosine ? 'cosine' : 'dot'}`,
    space: () => ({
      vectors: side === 'item' ? factors.itemFactors : factors.userFactors,
      width: factors.rank,
      rank,
      normalized: cosine,
    }),
  };
}

/**
 * Numbers of ratings as vectors of length one. A search for the vector [1] then finds the most popular
 * items.
 */
export function popularSpace(itemCounts: Uint32Array): NamedSpace {
  return {
    name: 'popular',
    space: () => {
      const vectors = sharedArray(Float32Array, itemCounts.length);
      vectors.set(itemCounts);
      return { vectors, width: 1, rank: 1, normalized: false };
    },
  };
}

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
