import type { ItemNames } from '../../operators/serving/item-names.ts';
import { NameItems } from '../../operators/serving/name-items.ts';
import type { Dataset } from '../dataset.ts';

/** Lists with the items' names in an additional column; unchanged without names. */
export function withNames(lists: Dataset, names: ItemNames | undefined, item: string): Dataset {
  return names === undefined ? lists : lists.pipe(new NameItems(names, item));
}
