import type { PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import { StepList } from '../step-list.ts';
import { allGather } from './all-gather.ts';
import type { Reduction } from './reduce.ts';
import { reduceScatter } from './reduce-scatter.ts';
import { reduceToOne } from './reduce-to-one.ts';
import { type Links, secondsOf, type Transfer, transfersOf } from './traffic.ts';

/** An exchange of data that is divided evenly among places. */
export interface ExchangeShape {
  readonly how: 'all-gather' | 'reduce-to-one' | 'reduce-scatter';
  /** Bytes of the gathered rows, or of the sums. */
  readonly bytes: number;
  readonly places: readonly Place[];
  /** For reduce-scatter; see Work. */
  readonly groups?: readonly (readonly Place[])[];
}

export interface ExchangeCost {
  readonly transfers: readonly Transfer[];
  readonly seconds: number;
}

const contracts = {
  'place-rows': { rows: 'read', whole: 'alone' },
  'add-rows': { addend: 'read', sum: 'alone' },
} as const;
const STAGE = 'exchange';

/**
 * Computes the transfers of an exchange, and the seconds that they take over the links. The transfers are
 * read from the steps that the exchange would make with one slice or part for each place.
 */
export function exchangeCost({ how, bytes, places, groups }: ExchangeShape, links: Links): ExchangeCost {
  const list = new StepList(contracts);
  const each = bytes / places.length;
  const named =
    (name: string) =>
    (partition: number): PartitionRef => ({ name, partition, version: 0 });
  const [partial, sum] = [named('partials'), named('sums')];
  const shape = () => ({ rows: 1, columns: 1, stride: 1 });
  const reduction: Reduction = {
    slice: (slice) => ({
      rows: 1,
      partials: places.map((at, k) => ({ ref: partial(slice * places.length + k), at })),
      owner: how === 'reduce-to-one' ? places[0] : places[slice],
      wire: 'f32',
    }),
    sum,
    shape,
  };
  const run =
    how === 'all-gather'
      ? allGather(list, STAGE, {
          rows: places.map(() => 1),
          part: (part) => ({ ref: partial(part), at: places[part] }),
          places,
          wire: 'f32',
          whole: () => sum(0),
          shape,
        })
      : how === 'reduce-to-one'
        ? reduceToOne(list, STAGE, reduction)
        : reduceScatter(list, STAGE, reduction, groups);
  places.forEach((_, part) => run(part));
  const transfers = transfersOf(list.steps, () => each);
  return { transfers, seconds: secondsOf(transfers, links) };
}
