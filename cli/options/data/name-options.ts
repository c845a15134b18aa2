import type { Model, Session, ItemNames } from '../../../index.ts';
import { UsageError } from '../../../engine/errors.ts';
import type { CommandContext } from '../../commands/command.ts';
import { text } from '../kinds.ts';
import { flagName, type Values } from '../option.ts';

/** Flags of commands that show items. */
export const nameOptions = {
  itemNames: text({ describe: 'file with names of items, such as titles, that are shown beside the ids: CSV, TSV, NDJSON, Parquet or Arrow', group: 'Data:' }),
  itemNamesIdCol: text({ describe: 'its column of ids', group: 'Data:', defaultText: "the model's item column, or item, movieId, id and the like" }),
  itemNamesCol: text({ describe: 'its column of names', group: 'Data:', defaultText: 'name, title and the like' }),
};

type NameValues = Values<typeof nameOptions>;

/** Throws UsageError for a flag that has no effect. */
export function checkNameFlags({ itemNames, ...columns }: NameValues): void {
  const idle = (['itemNamesIdCol', 'itemNamesCol'] as const).find((key) => columns[key] !== undefined);
  if (itemNames === undefined && idle !== undefined) throw new UsageError(`--${flagName(idle)} acts only with --item-names`, { advice: 'Leave it out, or name the file' });
}

/** The names of --item-names; undefined without the flag. */
export async function readNames(session: Session, values: NameValues, context: Pick<CommandContext, 'signal' | 'onEvent'>, of: { readonly model?: Model; readonly itemCol?: string }): Promise<ItemNames | undefined> {
  const { itemNames, itemNamesIdCol: idCol, itemNamesCol: nameCol } = values;
  if (itemNames === undefined) return undefined;
  const { signal, onEvent } = context;
  return session.readItemNames(itemNames, { ...of, ...(idCol === undefined ? {} : { idCol }), ...(nameCol === undefined ? {} : { nameCol }), signal, onEvent });
}
