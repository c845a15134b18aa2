import { partitionKey, type PartitionRef } from '../../partition.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { Step, Wire } from '../step.ts';

/** Bytes sent from one device to another. */
export interface Transfer {
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
export function secondsOf(transfers: readonly Transfer[], { places, bytesPerSecond, duplex }: Links): number {
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
