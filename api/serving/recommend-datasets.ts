import { UsageError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { concatKeys } from '../../engine/keys/arrow-keys.ts';
import { findId, findIds, fitsKeys, type Id } from '../../engine/keys/find-id.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { keysOfIds } from '../../engine/keys/keys-of-ids.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { andThen } from '../../engine/stream/logical-plan.ts';
import { readKnownPairs } from '../../operators/ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { chooseItems, withChosenItems } from '../../operators/serving/choose-items.ts';
import { blockOfExclusions, Exclusions } from '../../operators/serving/exclusions.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { Recommend, RecommendFew } from '../../operators/serving/recommend.ts';
import { RecommendInLists } from '../../operators/serving/lists/recommend-in-lists.ts';
import { indexBytes } from '../../operators/serving/search.ts';
import { type Dataset, datasetOf } from '../dataset.ts';
import { pairsOf } from '../found-columns.ts';
import type { ItemsOptions, RecommendOptions, UsersOptions } from './recommend-options.ts';
import { UNKNOWN_USER_ADVICE } from './request-options.ts';
import { findItems } from './find-items.ts';
import { maskOf, placedIndex } from './search-indexed.ts';
import { reportExclusions } from './report-exclusions.ts';
import { type Asked, reportLists, reportUnknown } from './report-lists.ts';
import type { ServedModel } from './served-model.ts';

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
  const chosen = chooseItems(factors.items, options);
  const swapped = columns.user !== served.columns.user;
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
  if (probes !== undefined) {
    const place = (ctx: ExecutionContext) => placedIndex(served, 'recommend', ctx);
    const mask = maskOf(keyCount(factors.items), chosen);
    const settings = { n, columns, exclude: excluded, unit, onEnd, probes, mask, place };
    return datasetOf(served.session, new RecommendInLists(factors, settings));
  }
  return datasetOf(
    served.session,
    new Recommend(withChosenItems(factors, chosen), { n, columns, exclude: excluded, unit, onEnd }),
  );
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
    return recommendAll(served, withUsers(served.factors, positions), n, served.columns, options, asked);
  }
  const chosen = chooseItems(items, options);
  let read: Promise<Exclusions> | undefined;
  const find = async (row: number, ctx: ExecutionContext) => {
    if (exclude !== undefined && !(exclude instanceof Exclusions))
      read ??= readExclusions(served, exclude, ctx);
    const exclusions = exclude instanceof Exclusions ? exclude : await read;
    const user = row < positions.length ? positions[row] : undefined;
    return findItems(served, user, n, { ...chosen, exclusions, probes }, ctx);
  };
  const onEnd = (short: number, ctx: ExecutionContext) => {
    reportLists(chosen, short, n, 'users', ctx);
    reportUnknown(
      asked,
      'user',
      unknownUsers === 'popular' ? 'the items with the most ratings' : 'no items',
      ctx,
    );
  };
  const known = takeKeys(users, positions);
  const rows = unknownUsers === 'popular' ? withUnknown(known, unknown) : known;
  return datasetOf(
    served.session,
    new RecommendFew(
      { users: rows, items },
      {
        n,
        columns: served.columns,
        find,
        onEnd,
        ...(unknownUsers === 'popular' ? { fallbackFrom: positions.length } : {}),
      },
    ),
  );
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
  return recommendAll(served, withUsers(swapped, positions), n, columns, options, asked);
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

/** The model with only the users at those positions. */
function withUsers(model: FactorModel, positions: Uint32Array): FactorModel {
  const { rank, users, userFactors } = model;
  const rows = new Float32Array(positions.length * rank);
  positions.forEach((position, i) =>
    rows.set(userFactors.subarray(position * rank, (position + 1) * rank), i * rank),
  );
  return { ...model, users: takeKeys(users, positions), userFactors: rows };
}
