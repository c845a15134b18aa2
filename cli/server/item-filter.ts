import { UsageError } from '../../engine/errors.ts';
import { parseColumn } from '../../api/parse-column.ts';
import type { ItemFilter, ItemFilters } from '../../index.ts';
import { type Field, short } from './fields.ts';
import type { LoadedModel } from './loaded-model.ts';

/** Longest condition of a request, and most `%` of a pattern in it, since matching many takes long. */
const MOST_LENGTH = 1000;
const MOST_WILDCARDS = 3;

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

type Tree = ReturnType<typeof parseColumn>['expression'];

/** Throws UsageError for patterns whose time grows fast with a text: they would stop all requests. */
function refuseSlow(tree: Tree): void {
  switch (tree.kind) {
    case 'call':
      if (tree.name === 'rlike')
        throw new UsageError('filter takes no regular expressions', {
          advice: "Use contains(a, 'text'), startsWith, endsWith or like",
        });
      if (tree.name === 'like') refuseWildcards(tree.args[1]);
      tree.args.forEach(refuseSlow);
      break;
    case 'cast':
      refuseSlow(tree.value);
      break;
    case 'when':
      for (const { when, value } of tree.branches) [when, value].forEach(refuseSlow);
      if (tree.otherwise !== undefined) refuseSlow(tree.otherwise);
      break;
    default:
  }
}

function refuseWildcards(pattern: Tree): void {
  const text = JSON.stringify(pattern);
  if (text.split('%').length - 1 > MOST_WILDCARDS)
    throw new UsageError(`filter takes at most ${MOST_WILDCARDS} % in a pattern`);
}
