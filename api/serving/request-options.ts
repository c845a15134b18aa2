import { UsageError } from '../../engine/errors.ts';
import { oneOf } from '../../engine/one-of.ts';
import { type Id, isId } from '../../engine/keys/find-id.ts';
import { Exclusions } from '../../operators/serving/exclusions.ts';
import type { ItemLists } from '../../operators/serving/choose-items.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { shown } from '../../engine/shown.ts';
import type { RunOptions } from '../run-session.ts';
import type { RequestedModel } from './served-model.ts';
import { checkIndexUse, type IndexOption } from './index-use.ts';
import { ItemFilter } from './item-filter.ts';
import { checkNames } from './item-name.ts';

/** Option of methods that return lists of items. */
export interface NameOptions {
  /** Names of items, from `session.readItemNames`, returned in an additional column or field `name`. */
  readonly names?: ItemNames;
}

/**
 * The response for an unknown user: no items (`empty`, the default), the items with the most ratings
 * (`popular`), or an error (`error`).
 */
export type UnknownUsers = 'empty' | 'popular' | 'error';

export const UNKNOWN_USER_ADVICE = "Leave it out, or choose unknownUsers: 'empty' or unknownUsers: 'popular'";

/** Options of `recommend`, for one user. */
export interface RequestOptions extends ItemLists, NameOptions, RunOptions, IndexOption {
  /** Pairs that must not be recommended, from `model.exclusions`. */
  readonly exclude?: Exclusions;
  /** The only items that may be recommended, by attributes: see Model.readItemFilters. */
  readonly filter?: ItemFilter;
  readonly unknownUsers?: UnknownUsers;
  /** λ for a user given by ratings; default: λ of the training. */
  readonly regParam?: number;
}

export const listNames = ['exclude', 'deny', 'allow', 'names', 'index'] as const;

export function checkRequest(options: RequestOptions, served: RequestedModel): void {
  checkOptions(
    'recommend',
    options,
    [...listNames, 'filter', 'unknownUsers', 'regParam', ...runOptionNames],
    '{ deny: [1, 2] }',
  );
  const { exclude, filter } = options;
  if (exclude !== undefined && !(exclude instanceof Exclusions))
    throw new UsageError('the option exclude of recommend takes exclusions', {
      advice: 'Read them once with model.exclusions(dataset)',
    });
  if (filter !== undefined && !(filter instanceof ItemFilter && filter.keys === served.factors.items))
    throw new UsageError('the option filter of recommend takes a filter of this model', {
      advice: "Make it with (await model.readItemFilters(path)).where('price < 10')",
    });
  checkItemLists('recommend', options, served);
  if (exclude !== undefined) checkExclusions('recommend', exclude, served);
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

/** Throws UsageError for a closed model, and unless the lists and names are of their types. */
export function checkItemLists(
  method: string,
  { deny, allow, names, index }: ItemLists & NameOptions & IndexOption,
  { searches, indexes }: RequestedModel,
): void {
  searches.requireOpen();
  checkIndexUse(method, index);
  indexes.probes('recommend', index);
  checkNames(method, names);
  if (deny !== undefined) checkIds(`the option deny of ${method}`, deny);
  if (allow !== undefined) checkIds(`the option allow of ${method}`, allow);
}

/** Throws UsageError unless the exclusions were read for this model. */
export function checkExclusions(method: string, exclude: Exclusions, { factors }: RequestedModel): void {
  if (exclude.users !== factors.users || exclude.items !== factors.items)
    throw new UsageError(`the option exclude of ${method} has exclusions of another model`, {
      advice: 'Read them with the exclusions method of this model',
    });
}

export function checkUnknown(unknownUsers: UnknownUsers = 'empty', { itemCounts }: RequestedModel): void {
  oneOf('unknownUsers', unknownUsers, ['empty', 'popular', 'error']);
  if (unknownUsers === 'popular' && itemCounts === undefined)
    throw new UsageError(
      'the model does not contain the number of ratings of its items, so popular items are unknown',
      {
        advice: 'Train it again with this release; models of Spark have no such counts',
      },
    );
}
