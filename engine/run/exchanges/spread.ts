import type { MatrixShape, PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import type { Wire } from '../step.ts';
import type { StepList } from '../step-list.ts';
import { type Located, sendRows } from './send-rows.ts';

/** A copy of a part under its own name. */
export interface Copy {
  readonly ref: PartitionRef;
  readonly at: Place;
  readonly shape: MatrixShape;
}

/** The exchange spread: copies the rows of a part to several places, each as its own partition. */
export function spreadRows(
  list: StepList,
  stage: string,
  part: Located,
  copies: readonly Copy[],
  wire: Wire | undefined,
): void {
  for (const { ref, at, shape } of copies) list.allocate(stage, at, ref, shape);
  const place = (to: Place) => {
    const copy = copies.find(({ at }) => at === to);
    if (copy === undefined) throw new Error(`${stage}: there is no copy at ${to}`);
    return list.task(stage, to, {
      kernel: 'place-rows',
      inputs: { rows: part.ref },
      outputs: { whole: copy.ref },
      params: { rowFrom: 0 },
    });
  };
  sendRows(
    list,
    stage,
    part,
    copies.map(({ at }) => at),
    wire,
    place,
  );
}
