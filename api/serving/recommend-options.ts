import { UsageError } from '../../engine/errors.ts';
import { type Id, isId } from '../../engine/keys/find-id.ts';
import { Exclusions } from '../../operators/serving/exclusions.ts';
import type { ItemLists } from '../../operators/serving/choose-items.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { shown } from '../../engine/shown.ts';
import type { Dataset } from '../dataset.ts';
import { requireDataset } from '../require-dataset.ts';
import type { RunOptions } from '../run-session.ts';
import type { ServedModel } from './served-model.ts';
import { checkIndexUse, type IndexOption } from './item-indexes.ts';
import { ItemFilter } from './item-filters.ts';
import { checkNames } from './with-names.ts';

/** Option of methods that return lists of items. */
export interface NameOptions {
  /** Names of items, from `session.readItemNames`, returned in an additional column or field `name`. */
  readonly names?: ItemNames;
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

/**
 * The response for an unknown user: no items (`empty`, the default), the items with the most ratings
 * (`popular`), or an error (`error`).
 */
export type UnknownUsers = 'empty' | 'popular' | 'error';

export const UNKNOWN_USER_ADVICE = "Leave it out, or choose unknownUsers: 'empty' or unknownUsers: 'popular'";

/** Options of methods that return users for items. */
export interface ItemsOptions extends NameOptions {
  /** Pairs that must not be recommended; pairs with unknown ids are ignored. */
  readonly exclude?: Dataset;
}

export interface UsersOptions extends RecommendOptions {
  readonly unknownUsers?: UnknownUsers;
}

export interface RequestOptions extends ItemLists, NameOptions, RunOptions, IndexOption {
  /** Pairs that must not be recommended, from `model.exclusions`. */
  readonly exclude?: Exclusions;
  /** The only items that may be recommended, by attributes: see Model.readItemFilters. */
  readonly filter?: ItemFilter;
  readonly unknownUsers?: UnknownUsers;
  /** λ for a user given by ratings; default: λ of the training. */
  readonly regParam?: number;
}

const listNames = ['exclude', 'deny', 'allow', 'names', 'index'] as const;

export function checkRecommend(method: string, options: RecommendOptions, served: ServedModel): void {
  checkOptions(method, options, listNames, '{ exclude: dataset }');
  checkLists(method, options, served);
}

export function checkItems(method: string, options: ItemsOptions): void {
  checkOptions(method, options, ['exclude', 'names'], '{ exclude: dataset }');
  checkNames(method, options.names);
  if (options.exclude !== undefined) requireDataset(options.exclude, `the option exclude of ${method}`);
}

export function checkUsers(method: string, options: UsersOptions, served: ServedModel): void {
  checkOptions(method, options, [...listNames, 'unknownUsers'], "{ unknownUsers: 'popular' }");
  checkLists(method, options, served);
  checkUnknown(options.unknownUsers, served);
}

export function checkRequest(options: RequestOptions, served: ServedModel): void {
  checkOptions(
    'recommend',
    options,
    [...listNames, 'filter', 'unknownUsers', 'regParam', ...runOptionNames],
    '{ deny: [1, 2] }',
  );
  if (options.exclude !== undefined && !(options.exclude instanceof Exclusions))
    throw new UsageError('the option exclude of recommend takes exclusions', {
      advice: 'Read them once with model.exclusions(dataset)',
    });
  const { filter } = options;
  if (filter !== undefined && !(filter instanceof ItemFilter && filter.keys === served.factors.items))
    throw new UsageError('the option filter of recommend takes a filter of this model', {
      advice: "Make it with (await model.readItemFilters(path)).where('price < 10')",
    });
  checkLists('recommend', options, served);
  checkUnknown(options.unknownUsers, served);
}

export function checkCount(n: number): void {
  if (!Number.isInteger(n) || n < 1 || n > 1000)
    throw new UsageError(`n must be a whole number from 1 to 1,000, got ${shown(n)}`);
}

/** Throws UsageError unless it is an id. */
export function checkId(what: string, id: unknown): asserts id is Id {
  if (!isId(id)) throw new UsageError(`${what} takes an id as number, text or bigint, got ${shown(id)}`);
}

/** Returns the id. Throws UsageError for anything else. */
export function checkedId(what: string, id: unknown): Id {
  checkId(what, id);
  return id;
}

/** Throws UsageError unless `ids` is a list of ids. */
export function checkIds(what: string, ids: readonly Id[]): void {
  if (!Array.isArray(ids))
    throw new UsageError(`${what} takes a list of ids, got ${shown(ids)}`, { advice: 'For example [1, 2]' });
  const wrong = ids.find((id) => !isId(id));
  if (wrong !== undefined || ids.includes(undefined as unknown as Id))
    throw new UsageError(`${what} takes ids as numbers, texts or bigints, got ${shown(wrong)}`);
}

function checkLists(
  method: string,
  { exclude, deny, allow, names, index }: RecommendOptions,
  { factors, searches, indexes }: ServedModel,
): void {
  searches.requireOpen();
  checkIndexUse(method, index);
  indexes.probes('recommend', index);
  checkNames(method, names);
  if (deny !== undefined) checkIds(`the option deny of ${method}`, deny);
  if (allow !== undefined) checkIds(`the option allow of ${method}`, allow);
  if (exclude instanceof Exclusions) {
    if (exclude.users !== factors.users || exclude.items !== factors.items)
      throw new UsageError(`the option exclude of ${method} has exclusions of another model`, {
        advice: 'Read them with the exclusions method of this model',
      });
  } else if (exclude !== undefined) requireDataset(exclude, `the option exclude of ${method}`);
}

function checkUnknown(unknownUsers: UnknownUsers = 'empty', { itemCounts }: ServedModel): void {
  if (!['empty', 'popular', 'error'].includes(unknownUsers))
    throw new UsageError(`unknownUsers must be one of empty, popular, error, got ${shown(unknownUsers)}`);
  if (unknownUsers === 'popular' && itemCounts === undefined)
    throw new UsageError(
      'the model does not contain the number of ratings of its items, so popular items are unknown',
      {
        advice: 'Train it again with this release; models of Spark have no such counts',
      },
    );
}
