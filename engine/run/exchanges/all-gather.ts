import type { MatrixShape, PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { Wire } from '../step.ts';
import type { StepList } from '../step-list.ts';
import { type Located, sendRows } from './send-rows.ts';

export interface Gathering {
  /** Rows of each part, in order. */
  readonly rows: readonly number[];
  /** Called for a part when it is sent. */
  part(part: number): Located;
  readonly places: readonly Place[];
  /** The form in which rows are sent. Undefined if the places compute in this process's memory. */
  readonly wire: Wire | undefined;
  /** Names the matrix of all rows. */
  whole(): PartitionRef;
  shape(place: Place): MatrixShape;
}

/**
 * The exchange all-gather: every place gets the rows of all parts, as one matrix. Call the returned function
 * once for each part, in any order. A part is sent while later parts are computed.
 */
export function allGather(
  list: StepList,
  stage: string,
  { rows, part: partOf, places, wire, whole, shape }: Gathering,
): (part: number) => void {
  let matrix: PartitionRef | undefined;
  const begin = (): PartitionRef => {
    const made = whole();
    for (const place of places) list.allocate(stage, place, made, shape(place));
    return made;
  };
  return (part) => {
    const into = (matrix ??= begin());
    const located = partOf(part);
    const rowFrom = rows.slice(0, part).reduce((sum, count) => sum + count, 0);
    sendRows(list, stage, located, places, wire, (place) =>
      list.task(
        stage,
        place,
        {
          kernel: 'place-rows',
          inputs: { rows: located.ref },
          outputs: { whole: into },
          params: { rowFrom, ...(wire === 'i8' ? { rounded: true } : {}) },
        },
        { bands: { whole: part } },
      ),
    );
  };
}
