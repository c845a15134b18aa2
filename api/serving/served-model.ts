import type { IndexKind, IndexHeader } from '../../connectors/model/index-layout.ts';
import type { StoredIndex } from '../../connectors/model/item-index-file.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { findId, type Id, type IdForm, type IdValues, idValues } from '../../engine/keys/find-id.ts';
import { sharedCopy } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type FactorModel, type ItemRows, rowsInMemory } from '../../operators/serving/factor-model.ts';
import type {
  PlacedLists,
  Found,
  SearchRequest,
  SearchSpace,
  ListIndex,
} from '../../operators/serving/search.ts';
import { type GramWeights, type UserRule, userRule } from '../../operators/serving/solve-users.ts';
import type { RequestSession, RunOptions } from '../run-session.ts';
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
  /** Of a model with attributes of users. */
  readonly priors?: UserPriors | undefined;
  /**
   * Of a model with attributes of items: what those of an item add to the score of a user with this row.
   * Undefined if they are not in memory. A page has none.
   */
  readonly sharesOfAttributes?: ((item: Id, user: Float32Array) => AttributeShare[] | undefined) | undefined;
  /** The item factors, if `factors.itemFactors` cannot be read yet: they are in a file on a server. */
  readonly remoteItems?: RemoteItems;
}

/** What an attribute of an item adds to a score. */
export interface AttributeShare {
  readonly column: string;
  /** Of a number its text, `missing` if it is missing; empty for a vector. */
  readonly value: string;
  readonly share: number;
}

/** What is known of a user who is solved from ratings: `attributes`, else those of the user of the model. */
export interface DescribedUser {
  /**
   * The id of a user whom the model has by `withUsers` or by the attributes of the training. Of a user with
   * ratings, a loaded model does not know the attributes.
   */
  readonly user?: Id;
  /** Values by the names of the training's columns. */
  readonly attributes?: Readonly<Record<string, unknown>>;
}

/** What attributes predict of users who are solved from ratings. */
export interface UserPriors {
  /** Throws UsageError for attributes that the model does not have. */
  of(user: DescribedUser): UserPrior;
}

export interface UserPrior {
  /** In the layout of the model's users. */
  readonly row: Float32Array;
  /** False if nothing is known of the user: the row is that of a user without attributes. */
  readonly isOwn: boolean;
}

/** Item factors that are read as requests need them. */
export interface RemoteItems extends ItemRows {
  /** The matrix of gramOfItems. */
  gram(weights: GramWeights, ctx: ExecutionContext): Promise<Float32Array>;
}

/** Reads rows of the item factors. */
export function itemRowsOf({ factors, remoteItems }: RequestedModel): ItemRows {
  return remoteItems ?? rowsInMemory(factors);
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
  return userRule(metadata, rank, () => meanOfColumn(factors.userFactors, factors.rank, rank), { regParam });
}

/** The rule by which new items are solved. */
export function itemRuleOf({ rank, metadata, searches }: RequestedModel, regParam?: number): UserRule {
  searches.requireOpen();
  return userRule(metadata, rank, () => 0, { regParam, solves: 'items' });
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
    space: () => ({
      vectors: sharedCopy(Float32Array.from(itemCounts)),
      width: 1,
      rank: 1,
      normalized: false,
    }),
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

/** From this number of items on, an index is used without being asked for. */
export const LARGE = 1_000_000;

/**
 * The use of a model's index: `auto` (default) from 1,000,000 items on, if the model has one; true or false
 * for any size; or the number of lists to search.
 */
export type IndexUse = 'auto' | boolean | number;

export interface IndexOption {
  readonly index?: IndexUse;
}

/** The indexes of a model, as requests use them. */
export interface UsedIndexes {
  /** The index of a kind. Throws DataError if its file is damaged, or of another model. */
  stored(kind: IndexKind): Promise<StoredIndex>;
  /** The number of lists to search; undefined for an exact search. Throws UsageError without an index. */
  probes(kind: IndexKind, use?: IndexUse): number | undefined;
  /** Searches lists that are not all in memory; absent where `stored` gives the whole index. */
  readonly search?: (
    kind: IndexKind,
    probes: number,
    request: SearchRequest,
    options: RunOptions,
  ) => Promise<Found>;
}

/** The number of lists to search of an index with this header: see UsedIndexes. */
export function probesOf(
  head: IndexHeader | undefined,
  kind: IndexKind,
  use: IndexUse,
  items: number,
): number | undefined {
  if (use === false) return undefined;
  if (use === 'auto') return head !== undefined && items >= LARGE ? head.probes : undefined;
  if (head === undefined) throw missingIndex(kind);
  return use === true ? head.probes : Math.min(use, head.lists);
}

/** The parts of an index that a search takes. */
export function listIndexOf({ header, centers, starts, guide, codes }: StoredIndex): ListIndex {
  const { rank, vectors, normalized, longest, margin } = header;
  return { rank, vectors, normalized, longest, margin, centers, starts, guide, codes };
}

/** Throws UsageError unless it is a use of an index. */
export function checkIndexUse(method: string, use: unknown): void {
  if (use === undefined || use === 'auto' || typeof use === 'boolean') return;
  if (Number.isInteger(use) && (use as number) >= 1) return;
  throw new UsageError(
    `the option index of ${method} must be 'auto', true, false or a number of lists, got ${shown(use)}`,
  );
}

export function missingIndex(kind: IndexKind): UsageError {
  return new UsageError(`the model has no index for ${kind}`, {
    advice: 'Build one by model.buildIndex() or factorflow index MODEL, or search without index',
  });
}
