import { type PartitionRef, partitionKey } from '../../partition.ts';
import { type Place, HOST } from '../../plan/place.ts';
import { StepList } from '../step-list.ts';
import type { Step, Wire } from '../step.ts';
import { type Reduction, reduceToOne, reduceScatter } from './reduce.ts';
import { allGather } from './send-rows.ts';

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

/** Bytes sent from one device to another. */
interface Transfer {
  readonly from: Place;
  readonly to: Place;
  readonly bytes: number;
  /**
   * The length of the longest chain of transfers that must have ended before this one: 0 in the first phase
   * of an exchange, 1 in the second.
   */
  readonly phase: number;
}

/** The links between devices. */
export interface Links {
  readonly places: readonly Place[];
  /** Bytes per second from each place (row) to each other place (column). */
  readonly bytesPerSecond: readonly (readonly number[])[];
  /** True if a device can send and receive at the same time, as over PCIe. False if one thread does both. */
  readonly duplex: boolean;
}

/** The transfers between devices (through host memory) in a list of steps, in list order. */
export function transfersOf(
  steps: readonly Step[],
  bytesOf: (ref: PartitionRef, wire: Wire | undefined) => number,
): Transfer[] {
  /** For partitions in host memory, the place that they were copied from. */
  const origins = new Map<string, Place>();
  /** For each step: the number of transfers in the longest chain of dependent steps that ends with it. */
  const depths: number[] = [];
  const transfers: Transfer[] = [];
  for (const { id, after, ended, do: action } of steps) {
    const depth = Math.max(0, ...[...after, ...ended].map((before) => depths[before]));
    depths[id] = depth;
    if (action.kind !== 'move') continue;
    const { ref, from, to, as, wire } = action;
    if (to === HOST) origins.set(partitionKey(as), from);
    const origin = from === HOST ? origins.get(partitionKey(ref)) : from;
    if (to === HOST || origin === undefined || origin === to) continue;
    transfers.push({ from: origin, to, bytes: bytesOf(ref, wire), phase: depth });
    depths[id] = depth + 1;
  }
  return transfers;
}

/** The sum of the bytes over each link, "gpu:0 > gpu:1", in the order of first use. */
export function bytesByLink(transfers: readonly Transfer[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { from, to, bytes } of transfers)
    sums[`${from} > ${to}`] = (sums[`${from} > ${to}`] ?? 0) + bytes;
  return sums;
}

/**
 * The seconds that transfers take, phase by phase; a phase takes as long as its busiest device. A device's
 * outgoing and incoming channels each carry one transfer at a time, at the rate of its link.
 */
function secondsOf(transfers: readonly Transfer[], { places, bytesPerSecond, duplex }: Links): number {
  const phases = Math.max(0, ...transfers.map(({ phase }) => phase + 1));
  let seconds = 0;
  for (let phase = 0; phase < phases; phase++) {
    const [out, into] = [new Float64Array(places.length), new Float64Array(places.length)];
    for (const one of transfers) {
      if (one.phase !== phase) continue;
      const [from, to] = [places.indexOf(one.from), places.indexOf(one.to)];
      if (from < 0 || to < 0) throw new Error(`no link is known from ${one.from} to ${one.to}`);
      const time = one.bytes / bytesPerSecond[from][to];
      out[from] += time;
      into[to] += time;
    }
    seconds += Math.max(
      ...places.map((_, at) => (duplex ? Math.max(out[at], into[at]) : out[at] + into[at])),
    );
  }
  return seconds;
}
