import type { ItemNamesOptions } from '../../../api/serving/read-item-names.ts';
import type { Session } from '../../../index.ts';
import type { CommandContext } from '../../commands/command.ts';
import { text } from '../kinds.ts';
import { refuseFlags, type Values } from '../option.ts';

/** Flags of commands that show items. */
export const nameOptions = {
  itemNames: text(
    'file with names of items, such as titles, shown next to ids: CSV, TSV, NDJSON, Parquet or Arrow',
  ),
  itemNamesIdCol: text('its column of ids', {
    defaultText: "the model's item column, or item, movieId, id and the like",
  }),
  itemNamesCol: text('its column of names', { defaultText: 'name, title and the like' }),
};

/** Flags of commands that colour items. */
export const namesAndGenreOptions = {
  ...nameOptions,
  itemNamesGenreCol: text(
    'its column of genres, which colour the map of items; of several, such as "Drama|War", the first',
    { defaultText: 'genre, genres, category and the like, if there is one' },
  ),
};

export type NameValues = Values<typeof nameOptions> & Partial<Values<typeof namesAndGenreOptions>>;

const columnFlags = ['itemNamesIdCol', 'itemNamesCol', 'itemNamesGenreCol'] as const;

/** Throws UsageError for a flag that has no effect. */
export function checkNameFlags({ itemNames, ...columns }: Partial<NameValues>): void {
  const idle = columnFlags.filter((key) => columns[key] !== undefined);
  if (itemNames === undefined)
    refuseFlags(new Set(idle), idle, 'acts only with --item-names', 'Leave it out, or name the file');
}

type NameContext = Pick<CommandContext, 'signal' | 'onEvent'>;

/** The model with the items to name, or the item column if there is no model yet. */
type NamedItems = Pick<ItemNamesOptions, 'model' | 'itemCol'>;

/** The names of --item-names; undefined without the flag. */
export async function readNames(session: Session, values: NameValues, context: NameContext, of: NamedItems) {
  const { signal, onEvent } = context;
  const { itemNames, itemNamesIdCol: idCol, itemNamesCol: nameCol, itemNamesGenreCol: genreCol } = values;
  if (itemNames === undefined) return undefined;
  const id = idCol === undefined ? {} : { idCol };
  const name = nameCol === undefined ? {} : { nameCol };
  const genre = genreCol === undefined ? {} : { genreCol };
  return session.readItemNames(itemNames, { ...of, ...id, ...name, ...genre, signal, onEvent });
}
