import type { Operator } from '../../engine/stream/operator.ts';
import { Ones } from '../ratings/rows/ones.ts';
import { SelectRatings } from '../ratings/rows/select-ratings.ts';
import { RandomSplit } from '../splits/random-split.ts';
import { TimeSplit } from '../splits/time-split.ts';

/** An operator as plain JSON that another thread can read. */
export type PortableOperator = ReturnType<(Ones | RandomSplit | SelectRatings | TimeSplit)['portable']>;

/**
 * The operators as JSON; undefined when one of them, such as an operator of the caller's, cannot go to
 * another thread.
 */
export function portableOf(operators: readonly Operator[]): readonly PortableOperator[] | undefined {
  const found = operators.map((operator) =>
    operator instanceof Ones ||
    operator instanceof RandomSplit ||
    operator instanceof SelectRatings ||
    operator instanceof TimeSplit
      ? operator.portable()
      : undefined,
  );
  return found.includes(undefined) ? undefined : (found as PortableOperator[]);
}

/** Makes an operator from its JSON. */
export function operatorFrom(portable: PortableOperator): Operator {
  switch (portable.operator) {
    case 'ones':
      return new Ones(portable.column);
    case 'random-split':
      return new RandomSplit(portable.from, portable.to, portable.options, portable.keep);
    case 'select-ratings':
      return new SelectRatings(portable.columns, portable.policy);
    case 'time-split':
      return new TimeSplit(portable.column, portable.range);
  }
}
