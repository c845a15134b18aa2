import { Exclusions } from '../../operators/serving/exclusions.ts';
import type { ItemLists } from '../../operators/serving/choose-items.ts';
import { checkOptions } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import { requireDataset } from '../require-dataset.ts';
import type { ServedModel } from './served-model.ts';
import type { IndexOption } from './index-use.ts';
import { checkNames } from './item-name.ts';
import {
  checkExclusions,
  checkItemLists,
  checkUnknown,
  listNames,
  type NameOptions,
  type UnknownUsers,
} from './request-options.ts';

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

function checkLists(method: string, options: RecommendOptions, served: ServedModel): void {
  checkItemLists(method, options, served);
  const { exclude } = options;
  if (exclude instanceof Exclusions) checkExclusions(method, exclude, served);
  else if (exclude !== undefined) requireDataset(exclude, `the option exclude of ${method}`);
}
