import type { Dataset } from '../../api/dataset.ts';
import type { Session } from '../../api/session.ts';
import type { EventSink } from '../../index.ts';
import type { ColumnValues } from '../options/data/data-options.ts';
import { readSpec, type ReadValues } from '../options/data/text-options.ts';

/** Opens ratings with the names of columns that flags give. */
export async function readNamed(
  session: Session,
  paths: string | readonly string[],
  values: ReadValues & ColumnValues,
): Promise<Dataset> {
  const { userCol, itemCol, ratingCol, timestampCol } = values;
  return (await session.read.any(paths, readSpec(values))).withColumns({
    user: userCol,
    item: itemCol,
    rating: ratingCol,
    time: timestampCol,
  });
}

/** The listener without notes that it has had. */
export function withoutRepeats(onEvent: EventSink): EventSink {
  const said = new Set<string>();
  return (event) => {
    if (event.type === 'note' && said.has(event.text)) return;
    if (event.type === 'note') said.add(event.text);
    onEvent(event);
  };
}
