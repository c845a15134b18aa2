import { UsageError } from '../../engine/errors.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import { ItemNames } from '../../operators/serving/item-names.ts';
import { shown } from '../../engine/shown.ts';

/** The field `name` of an item that has one. */
export function nameOf(names: ItemNames | undefined, item: Id): { readonly name?: string } {
  const name = names?.get(item);
  return name === undefined ? {} : { name };
}

export function checkNames(method: string, names: ItemNames | undefined): void {
  if (names === undefined || names instanceof ItemNames) return;
  throw new UsageError(`the option names of ${method} takes ItemNames, got ${shown(names)}`, {
    advice: 'Read them with session.readItemNames(path), or make them with new ItemNames(entries)',
  });
}
