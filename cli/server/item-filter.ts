import { UsageError } from '../../engine/errors.ts';
import { parseColumn } from '../../api/parse-column.ts';
import type { ItemFilter, ItemFilters } from '../../index.ts';
import { type Field, short } from './fields.ts';
import { refuseSlow } from './filter-cost.ts';
import type { LoadedModel } from './loaded-model.ts';

/** Longest condition of a request. */
const MOST_LENGTH = 1000;

/** Conditions that were found to be fast, so that they are parsed once. */
const checked = new WeakMap<ItemFilters, Set<string>>();
const MOST_ACCEPTED = 1000;

export const filterField: Field<string | undefined> = {
  describe:
    "condition on the attributes of items, as SQL writes it: genre in ('Drama', 'War') and price between 5 and 10",
  schema: { type: 'string', maxLength: MOST_LENGTH },
  read: (given, name) => {
    if (given === undefined) return undefined;
    if (typeof given === 'string' && given.trim() !== '' && given.length <= MOST_LENGTH) return given;
    throw new UsageError(`${name} must be a condition of at most 1,000 characters, got ${short(given)}`);
  },
};

/** The items that a request asks for; undefined for all. */
export function filterOf({ filters }: LoadedModel, condition: string | undefined): ItemFilter | undefined {
  if (condition === undefined) return undefined;
  if (filters === undefined)
    throw new UsageError('this server has no attributes of items, so filter cannot be used', {
      advice: 'Start it with --items FILE',
    });
  let accepted = checked.get(filters);
  if (accepted === undefined) checked.set(filters, (accepted = new Set()));
  if (!accepted.has(condition)) {
    refuseSlow(parseColumn(condition).expression);
    if (accepted.size === MOST_ACCEPTED) accepted.clear();
    accepted.add(condition);
  }
  return filters.where(condition);
}
