import { UsageError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { counted, formatCount } from '../../engine/format.ts';
import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import { findId, findIds, fitsKeys, type Id, keysOfIds } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { andThen } from '../../engine/stream/logical-plan.ts';
import type { TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import { readKnownPairs } from '../../operators/ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../operators/ratings/ratings.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import {
  chooseItems,
  type ChosenItems,
  type ItemLists,
  maskOf,
  withChosenItems,
  blockOfExclusions,
  Exclusions,
} from '../../operators/serving/choose-items.ts';
import { type FactorModel, withRows } from '../../operators/serving/factor-model.ts';
import {
  amongAll,
  amongLists,
  type ListFinder,
  oneByOne,
  Recommend,
} from '../../operators/serving/recommend.ts';
import { indexBytes } from '../../operators/serving/search.ts';
import { type Similarity, similarityModel, withoutThemselves } from '../../operators/serving/similar.ts';
import { checkOptions } from '../check-options.ts';
import { type Dataset, datasetOf, requireDataset } from '../dataset.ts';
import { pairsOf } from '../found-columns.ts';
import type { ServedModel } from './build-index.ts';
import { withNames } from './name-columns.ts';
import {
  checkNames,
  checkExclusions,
  checkItemLists,
  checkUnknown,
  findItems,
  listNames,
  type NameOptions,
  UNKNOWN_USER_ADVICE,
  type UnknownUsers,
  checkCount,
  checkIds,
} from './request.ts';
import { type IndexOption, placedIndex } from './served-model.ts';
import {
  indexKindOf,
  queryOf,
  searchSimilar,
  sideOf,
  type SimilarOptions,
  similarProbes,
  type SimilarSearch,
} from './similar-to.ts';
import { listParams, similarParams, recommendParams } from '../option-params.ts';

/**
 * At most this number of users is searched one by one, with an index. MOST_INDEX_BYTES: the largest index
 * that threads can address in addition to their own memory.
 */
const FEW = 256;
const MOST_INDEX_BYTES = 3.5 * 2 ** 30;

/**
 * Names of the columns of recommendation lists. If users and items are swapped, the lists have the best users
 * for each item.
 */
export interface ListColumns {
  readonly user: string;
  readonly item: string;
  readonly prediction: string;
}

/**
 * The lists of all rows of `factors`, computed by the session's device. `asked`: rows that were asked for, if
 * these may be unknown.
 */
export function recommendAll(
  served: ServedModel,
  factors: FactorModel,
  n: number,
  columns: ListColumns,
  options: RecommendOptions,
  asked: Asked = { all: 0, unknown: 0 },
): Dataset {
  const { exclude } = options;
  const swapped = columns.user !== served.columns.user;
  const chosen = chooseItems(factors.items, options, swapped ? undefined : served.itemCounts);
  const excluded =
    exclude &&
    ((ctx: ExecutionContext, model: FactorModel) =>
      exclude instanceof Exclusions
        ? blockOfExclusions(exclude, model, ctx)
        : excludeBlock(exclude, { served, swapped }, model, ctx));
  const unit = swapped ? 'items' : 'users';
  const onEnd = (short: number, ctx: ExecutionContext) => {
    reportLists(chosen, short, n, unit, ctx);
    reportUnknown(asked, swapped ? 'item' : 'user', swapped ? 'no users' : 'no items', ctx);
  };
  const probes = swapped ? undefined : served.indexes.probes('recommend', options.index);
  const model = probes === undefined ? withChosenItems(factors, chosen) : factors;
  const place = (own: ExecutionContext) => placedIndex(served, 'recommend', own);
  const finder =
    probes === undefined
      ? amongAll(model, n, excluded)
      : amongLists(model, { n, probes, excluded, mask: maskOf(keyCount(model.items), chosen), place });
  return listed(served, new Recommend(model, { n, columns, unit, onEnd }, finder), options);
}

/** The lists with the names of the items, if they are given. */
function listed({ session, columns }: ServedModel, lists: Recommend, { names }: NameOptions): Dataset {
  return withNames(datasetOf(session, lists), names, columns.item);
}

/** The lists of some users, by ascending id, then of unknown users. */
export function recommendSome(
  served: ServedModel,
  ids: readonly Id[],
  n: number,
  options: UsersOptions,
): Dataset {
  const { unknownUsers = 'empty', exclude } = options;
  const { users, items } = served.factors;
  const { positions, unknown } = requestedUsers(users, ids, unknownUsers);
  const asked = { all: positions.length + unknown.length, unknown: unknown.length };
  const few = positions.length <= FEW || unknownUsers === 'popular';
  const probes = served.indexes.probes('recommend', options.index);
  const fits = probes !== undefined || indexBytes(keyCount(items), served.factors.rank) <= MOST_INDEX_BYTES;
  if (!few || !fits) {
    const some = withRows(served.factors, 'users', positions);
    return recommendAll(served, some, n, served.columns, options, asked);
  }
  const chosen = chooseItems(items, options, served.itemCounts);
  let read: Promise<Exclusions> | undefined;
  const find = async (row: number, ctx: ExecutionContext) => {
    if (exclude !== undefined && !(exclude instanceof Exclusions))
      read ??= readExclusions(served, exclude, ctx);
    const exclusions = exclude instanceof Exclusions ? exclude : await read;
    const user = row < positions.length ? positions[row] : undefined;
    return findItems(served, user, n, { ...chosen, exclusions, probes }, ctx);
  };
  const isPopular = unknownUsers === 'popular';
  const onEnd = (short: number, ctx: ExecutionContext) => {
    reportLists(chosen, short, n, 'users', ctx);
    reportUnknown(asked, 'user', isPopular ? 'the items with the most ratings' : 'no items', ctx);
  };
  const known = takeKeys(users, positions);
  const rows = isPopular ? withUnknown(known, unknown) : known;
  const lists = { n, columns: served.columns, onEnd, ...(isPopular && { fallbackFrom: positions.length }) };
  const finder = oneByOne(keyCount(rows), n, find);
  return listed(served, new Recommend({ users: rows, items }, lists, finder), options);
}

/** Ids with unknown ones after them, of which some may be of another type than the column. */
function withUnknown(known: KeyColumn, unknown: readonly Id[]): KeyColumn {
  const { type } = known;
  const later = keysOfIds(
    unknown.filter((id) => fitsKeys(type, id)),
    type,
  );
  return concatKeys(type, [known, later]);
}

/** The best users for all items or some of them: the search for items with users and items swapped. */
export function recommendUsers(
  served: ServedModel,
  ids: readonly Id[] | 'all',
  n: number,
  options: ItemsOptions,
): Dataset {
  served.searches.requireOpen();
  const { items } = served.factors;
  const { user, item, prediction } = served.columns;
  const swapped = swappedSides(served.factors);
  const columns = { user: item, item: user, prediction };
  if (ids === 'all') return recommendAll(served, swapped, n, columns, options);
  const { positions, unknown } = findIds(items, ids);
  const asked = { all: ids.length, unknown };
  return recommendAll(served, withRows(swapped, 'users', positions), n, columns, options, asked);
}

/** Reads pairs to exclude, of users and items of the model, and reports unknown ones. */
export function readExclusions(
  { factors, columns, searches }: Pick<ServedModel, 'factors' | 'columns' | 'searches'>,
  dataset: Dataset,
  ctx: ExecutionContext,
): Promise<Exclusions> {
  searches.requireOpen();
  return Holdings.within(ctx, async (held) =>
    readPairs(dataset, await pairsOf(dataset, columns, held), factors, held),
  );
}

async function readPairs(
  dataset: Dataset,
  pairs: Pick<ListColumns, 'user' | 'item'>,
  model: FactorModel,
  ctx: ExecutionContext,
): Promise<Exclusions> {
  const { block, unknown } = await readBlock(dataset, pairs, model, ctx);
  return new Exclusions(model, block, unknown);
}

async function readBlock(
  dataset: Dataset,
  pairs: Pick<ListColumns, 'user' | 'item'>,
  model: FactorModel,
  ctx: ExecutionContext,
) {
  const plan = andThen(dataset.plan, new SelectRatings(pairs));
  const { indexed, coldPairs } = await readKnownPairs(plan, model, dataset.session.splitBytes, ctx);
  reportExclusions({ known: indexed.rows, unknown: coldPairs }, ctx.events);
  const block = await sortByUser(indexed, 'keep', ctx);
  return { block, unknown: coldPairs };
}

interface SearchedSides {
  readonly served: ServedModel;
  /** True if users and items are swapped: the search's users are the data's items. */
  readonly swapped: boolean;
}

/**
 * The excluded pairs as a block over `model`, which may have only some of the users and items. They are read
 * with the ids of the whole model, so that pairs of the others are not reported as unknown.
 */
async function excludeBlock(
  dataset: Dataset,
  { served, swapped }: SearchedSides,
  model: FactorModel,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const { user, item } = await pairsOf(dataset, served.columns, ctx);
  const pairs = swapped ? { user: item, item: user } : { user, item };
  const whole = swapped ? swappedSides(served.factors) : served.factors;
  if (model.users === whole.users && model.items === whole.items)
    return (await readBlock(dataset, pairs, model, ctx)).block;
  const exclusions = await Holdings.within(ctx, (held) => readPairs(dataset, pairs, whole, held));
  return blockOfExclusions(exclusions, model, ctx);
}

function swappedSides({ rank, users, items, userFactors, itemFactors }: FactorModel): FactorModel {
  return { rank, users: items, items: users, userFactors: itemFactors, itemFactors: userFactors };
}

/**
 * Separates ids into positions of known users (ascending, without duplicates) and unknown ids. Throws
 * UsageError with the first unknown id if the policy is `error`.
 */
function requestedUsers(users: KeyColumn, ids: readonly Id[], policy: UsersOptions['unknownUsers']) {
  const positions = new Set<number>();
  const unknown = new Map<string, Id>();
  for (const id of ids) {
    const position = findId(users, id);
    if (position >= 0) positions.add(position);
    else unknown.set(String(id), id);
  }
  const [first] = unknown.values();
  if (first !== undefined && policy === 'error')
    throw new UsageError(`the model has no user ${String(first)}`, { advice: UNKNOWN_USER_ADVICE });
  return { positions: Uint32Array.from(positions).sort(), unknown: [...unknown.values()] };
}

/**
 * Emits a note if the model does not know some of the pairs. If it knows less than half, emits and returns a
 * warning.
 */
export function reportExclusions(
  { known, unknown }: { readonly known: number; readonly unknown: number },
  events: EventSink,
): TrainingWarning | undefined {
  if (unknown === 0) return undefined;
  const code = 'unknown-exclusions';
  const count = unknown;
  if (known >= unknown) {
    const text = `${formatCount(unknown)} excluded pairs have a user or an item that the model does not know`;
    events({ type: 'note', code, count, text });
    return undefined;
  }
  const all = formatCount(known + unknown);
  const subject =
    known === 0
      ? `no pair of the option exclude is known to the model: ${all} pairs`
      : `only ${formatCount(known)} of ${all} pairs of the option exclude are known to the model: ${formatCount(unknown)}`;
  const text = `${subject} of unknown users or items, which exclude nothing. Check the ids, userCol and itemCol`;
  events({ type: 'warning', code, count, text });
  return { code, text };
}

/** Ids that were asked for, and those that the model does not know. */
interface Asked {
  readonly all: number;
  readonly unknown: number;
}

/** Warns of unknown users or items, which get `given`. */
export function reportUnknown(
  { all, unknown }: Asked,
  unit: 'user' | 'item',
  given: string,
  { events }: ExecutionContext,
): void {
  if (unknown === 0) return;
  const [are, get] = unknown === 1 ? ['is', 'gets'] : ['are', 'get'];
  const ids = `${formatCount(unknown)} of ${counted(all, unit)}`;
  events({ type: 'warning', text: `${ids} ${are} unknown to the model and ${get} ${given}` });
}

/** Warns of unknown ids in the lists allow and deny, and of lists with fewer than n entries. */
function reportLists(
  { unknown }: ChosenItems,
  short: number,
  n: number,
  unit: 'users' | 'items',
  { events }: ExecutionContext,
): void {
  const [one, others] = unit === 'users' ? ['user', 'items'] : ['item', 'users'];
  if (unknown > 0)
    events({
      type: 'warning',
      text: `${counted(unknown, 'id')} of the lists allow and deny ${unknown === 1 ? 'is' : 'are'} unknown to the model`,
    });
  if (short > 0)
    events({
      type: 'warning',
      text: `${counted(short, one)} ${short === 1 ? 'has' : 'have'} fewer than ${n} ${others}`,
    });
}

/**
 * Options of `recommendForAllUsers` and similar methods; `recommend`, for one user, takes `RequestOptions`.
 * `deny`: items that are never recommended. `allow`: the only items that may be recommended. Unknown ids are
 * only counted.
 */
export interface RecommendOptions extends ItemLists, NameOptions, IndexOption {
  /**
   * Pairs that must not be recommended, such as the training ratings: a data set, read once per call, or the
   * result of `model.exclusions`. Pairs with unknown ids are ignored.
   */
  readonly exclude?: Dataset | Exclusions;
}

/** Options of methods that return users for items. */
export interface ItemsOptions extends NameOptions {
  /** Pairs that must not be recommended; pairs with unknown ids are ignored. */
  readonly exclude?: Dataset;
}

export interface UsersOptions extends RecommendOptions {
  readonly unknownUsers?: UnknownUsers;
}

export function checkRecommend(method: string, options: RecommendOptions, served: ServedModel): void {
  checkOptions(method, options, listNames, '{ exclude: dataset }', listParams);
  checkLists(method, options, served);
}

export function checkItems(method: string, options: ItemsOptions): void {
  checkOptions(method, options, ['exclude', 'names'], '{ exclude: dataset }');
  checkNames(method, options.names);
  if (options.exclude !== undefined) requireDataset(options.exclude, `the option exclude of ${method}`);
}

export function checkUsers(method: string, options: UsersOptions, served: ServedModel): void {
  checkOptions(method, options, listNames, "{ unknownUsers: 'popular' }", recommendParams);
  checkLists(method, options, served);
  checkUnknown(options.unknownUsers, served);
}

function checkLists(method: string, options: RecommendOptions, served: ServedModel): void {
  checkItemLists(method, options, served);
  const { exclude } = options;
  if (exclude instanceof Exclusions) checkExclusions(method, exclude, served);
  else if (exclude !== undefined) requireDataset(exclude, `the option exclude of ${method}`);
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
  checkOptions(method, options, ['names', 'index'], "{ similarity: 'dot' }", similarParams);
  checkNames(method, options.names);
  if (side === 'user' && options.names !== undefined)
    throw new UsageError('the option names of similarUsers cannot be used: users have no names', {
      advice: 'Leave it out',
    });
  checkCount(n);
  const { similarity = 'cosine' } = options;
  served.searches.requireOpen();
  if (ids !== 'all') checkIds(method, ids);
  const { keys } = sideOf(served, side);
  const { positions, unknown } =
    ids === 'all' ? { positions: rowsOf(keyCount(keys)), unknown: 0 } : findIds(keys, ids);
  const probes = similarProbes(served, method, side, similarity, options.index);
  const asked = { all: ids.length, unknown };
  const name = served.columns[side];
  const columns = {
    user: name,
    item: `similar${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    prediction: 'similarity',
  };
  const isMany = ids === 'all' || positions.length > FEW;
  const search = { side, positions, n, similarity, probes };
  const finder = isMany ? similarToMany(served, search) : similarToFew(served, search);
  const unit = isMany ? { unit: `${side}s` } : {};
  const onEnd = (_short: number, ctx: ExecutionContext) =>
    reportUnknown(asked, side, `no similar ${side}s`, ctx);
  const lists = new Recommend(
    { users: takeKeys(keys, positions), items: keys },
    { n, columns, onEnd, ...unit },
    finder,
  );
  return withNames(datasetOf(served.session, lists), options.names, columns.item);
}

const rowsOf = (count: number) => Uint32Array.from({ length: count }, (_, row) => row);

/** Searches for many rows in tasks of the session's device. */
function similarToMany(
  served: ServedModel,
  { side, positions, n, similarity, probes }: SimilarSearch,
): ListFinder {
  const { factors, rank } = served;
  const { keys, values } = sideOf(served, side);
  if (probes !== undefined) {
    const place = (ctx: ExecutionContext) => placedIndex(served, indexKindOf(similarity), ctx);
    const queries = similarQueries(served, positions, similarity);
    return amongLists(queries, { n, probes, excluded: withoutThemselves, place });
  }
  const query = { ids: keys, factors: values, rank: factors.rank, features: rank, positions, similarity };
  return amongAll(similarityModel(query), n, withoutThemselves);
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
function similarToFew(served: ServedModel, { positions, ...search }: SimilarSearch): ListFinder {
  const find = (row: number, { signal, events }: ExecutionContext) =>
    searchSimilar(served, { ...search, position: positions[row] }, { signal, onEvent: events });
  return oneByOne(positions.length, search.n, find);
}
