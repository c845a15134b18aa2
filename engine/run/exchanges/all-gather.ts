import type { MatrixShape, PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { Wire } from '../step.ts';
import type { StepList } from '../step-list.ts';
import { type Located, sendRows } from './send-rows.ts';

export interface Gathering {
  /** Of the parts, in their order. */
  readonly rows: readonly number[];
  /** A part when it is its turn. */
  part(part: number): Located;
  readonly places: readonly Place[];
  /** Undefined where the places compute in the memory of this process. */
  readonly wire: Wire | undefined;
  /** Names the matrix of all rows. */
  whole(): PartitionRef;
  shape(place: Place): MatrixShape;
}

/**
 * The exchange all-gather: every place gets the rows of all parts as one matrix. It goes part by part, in the
 * order in which the given function is called with parts: a part is on its way while later ones are computed.
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
          params: { rowFrom },
        },
        { bands: { whole: part } },
      ),
    );
  };
}
