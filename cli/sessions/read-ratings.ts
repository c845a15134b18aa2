import type { Dataset } from '../../api/dataset.ts';
import type { Session } from '../../api/session.ts';
import type { EventSink } from '../../index.ts';
import type { ColumnValues, RowValues } from '../options/data/data-options.ts';
import { readSpec, type ReadValues } from '../options/data/text-options.ts';

/** Opens ratings with the column names that flags give. */
export async function readNamed(
  session: Session,
  paths: string | readonly string[],
  values: ReadValues & ColumnValues,
): Promise<Dataset> {
  const { userCol, itemCol, ratingCol, timestampCol } = values;
  return (await chosenRows(await session.read.any(paths, readSpec(values)), values)).withColumnNames({
    user: userCol,
    item: itemCol,
    rating: ratingCol,
    timestamp: timestampCol,
  });
}

/** The same without --with and --where, for exclusions and candidates. */
export function readWhole(
  session: Session,
  paths: string | readonly string[],
  values: ReadValues & ColumnValues,
): Promise<Dataset> {
  return readNamed(session, paths, { ...values, with: undefined, where: undefined });
}

/** The rows with the columns of --with, filtered by --where. */
export async function chosenRows(rows: Dataset, { with: computed = [], where }: RowValues): Promise<Dataset> {
  if (computed.length === 0 && where === undefined) return rows;
  const { parseColumn } = await import('../../api/parse-column.ts');
  const added = computed.reduce((made, { name, text }) => made.withColumn(name, parseColumn(text)), rows);
  const chosen = where === undefined ? added : added.filter(parseColumn(where));
  // Reports a wrong name or type before anything else is done.
  await chosen.schema();
  return chosen;
}

/** A listener that drops repeated notes. */
export function withoutRepeats(onEvent: EventSink): EventSink {
  const said = new Set<string>();
  return (event) => {
    if (event.type === 'note' && said.has(event.text)) return;
    if (event.type === 'note') said.add(event.text);
    onEvent(event);
  };
}
