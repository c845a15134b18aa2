import type { Operator, PortableOperator } from '../../engine/stream/operator.ts';
import { DropNulls } from '../dataflow/drop-nulls.ts';
import { Filter } from '../dataflow/filter.ts';
import { MapBatches } from '../dataflow/map-batches.ts';
import { Project } from '../dataflow/project.ts';
import { Sample } from '../dataflow/sample.ts';
import { Ones } from '../ratings/rows/ones.ts';
import { SelectRatings } from '../ratings/rows/select-ratings.ts';
import { RandomSplit } from '../splits/random-split.ts';
import { TimeSplit } from '../splits/time-split.ts';

/** The operators of the library that can go to another thread, by name: each is made from its JSON. */
const makers: Readonly<Record<string, (portable: never) => Operator>> = {
  'drop-nulls': DropNulls.from,
  filter: Filter.from,
  'map-batches': MapBatches.from,
  ones: Ones.from,
  project: Project.from,
  'random-split': RandomSplit.from,
  sample: Sample.from,
  'select-ratings': SelectRatings.from,
  'time-split': TimeSplit.from,
};

/** The operators as JSON. Throws where one cannot go to another thread. */
export function portableOf(operators: readonly Operator[]): PortableOperator[] {
  return operators.map((operator) => {
    const portable = operator.portable?.();
    if (portable === undefined) throw new Error(`the operator ${operator.name} has no portable form`);
    return portable;
  });
}

/** Makes an operator from its JSON. */
export function operatorFrom(portable: PortableOperator): Operator {
  const make = makers[portable.operator];
  if (make === undefined) throw new Error(`no operator has the name ${portable.operator}`);
  return make(portable as never);
}
