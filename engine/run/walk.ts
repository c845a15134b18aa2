import { partitionKey, type PartitionRef } from '../partition.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';
import { expand, expandFree } from './expand.ts';
import type { Step, TaskContracts } from './step.ts';
import { type BoundPlan, type KeptVersions, keptOf, partBytes, partRef } from '../plan/bound-plan.ts';
import type { DataSet } from '../plan/stages.ts';

/** Blocks of each row of a grid that a walk visits: with two blocks at a place at a time, further ones add nothing to its peak. */
const SAMPLED_VISITS = 4;

/** The bytes that are alive at each place, and their peaks, while steps are added in the order of their lists. */
export class MemoryWalk {
  readonly #bound: BoundPlan;
  readonly #sets = new Map<string, DataSet>();
  readonly #given = new Map<string, { readonly set: DataSet; readonly partition: number }>();
  readonly #live = new Map<string, { readonly place: Place; readonly bytes: number }>();
  readonly #largest = new Map<string, number>();
  readonly #held: ReadonlyMap<string, number>;
  readonly #now = new Map<Place, number>();
  readonly #peak = new Map<Place, number>();

  /** Begins with the data sets that exist before the first step, at their homes. */
  constructor(bound: BoundPlan) {
    this.#bound = bound;
    this.#held = new Map(Object.values(bound.phases).flatMap((stages) => stages.flatMap(({ name, heldBytes }) => (heldBytes === undefined ? [] : [[name, heldBytes] as const]))));
    for (const set of bound.datasets) {
      if (!set.given) {
        this.#sets.set(`${bound.name}/${set.name}`, set);
        continue;
      }
      set.parts.forEach(({ at: [home] }, partition) => {
        const ref = partRef(bound, set, partition, 0);
        this.#given.set(partitionKey(ref), { set, partition });
        this.#add(home, ref);
      });
    }
  }

  add(steps: readonly Step[]): this {
    for (const { stage, at, do: action } of steps) {
      const held = this.#held.get(stage);
      if (held !== undefined && !this.#live.has(`${at} ${stage}`)) this.#note(`${at} ${stage}`, at, held);
      if (action.kind === 'allocate') this.#add(at, action.ref);
      else if (action.kind === 'move') this.#move(action);
      else if (action.kind === 'task') for (const ref of Object.values(action.task.outputs)) this.#add(at, ref);
      else if (action.kind === 'free' || action.kind === 'spill') for (const ref of action.refs) this.#remove(at, ref);
    }
    return this;
  }

  /** Rows that came by wire are in host memory until a task has read them. */
  #move({ to, as, wire }: Extract<Step['do'], { readonly kind: 'move' }>): void {
    if (wire === undefined || !this.#bound.devices.some(({ place, ownMemory }) => place === to && ownMemory)) this.#add(to, as);
  }

  /** By place, those of the devices that hold factors and of the host. */
  get peak(): Readonly<Record<Place, number>> {
    return Object.fromEntries(this.#peak);
  }

  /** The partitions that are alive now, at all places. */
  get live(): number {
    return [...this.#now.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  #add(place: Place, ref: PartitionRef): void {
    const key = `${place} ${partitionKey(ref)}`;
    if (this.#live.has(key)) return;
    const { set, partition } = this.#find(ref);
    // A device without memory of its own reaches host partitions where they are.
    const owns = set.columns !== undefined || this.#bound.devices.find((one) => one.place === place)?.ownMemory;
    const [home] = set.parts[partition].at;
    if (!owns && place !== home && home !== SPILL) return;
    // A later round may have the largest blocks side by side.
    const counted = set.by === 'block' && !set.parts[partition].at.includes(place) ? this.#largestPart(set, place) : partition;
    this.#note(key, owns || place === SPILL ? place : HOST, partBytes(this.#bound, set, counted, place));
  }

  #largestPart(set: DataSet, place: Place): number {
    const key = `${place} ${set.name}`;
    let found = this.#largest.get(key);
    if (found === undefined) {
      const bytes = set.parts.map((_, partition) => partBytes(this.#bound, set, partition, place));
      this.#largest.set(key, (found = bytes.reduce((best, one, at) => (one > bytes[best] ? at : best), 0)));
    }
    return found;
  }

  #note(key: string, place: Place, bytes: number): void {
    this.#live.set(key, { place, bytes });
    const now = (this.#now.get(place) ?? 0) + bytes;
    this.#now.set(place, now);
    this.#peak.set(place, Math.max(this.#peak.get(place) ?? 0, now));
  }

  #remove(at: Place, ref: PartitionRef): void {
    const key = `${at} ${partitionKey(ref)}`;
    const found = this.#live.get(key);
    if (found === undefined) return;
    this.#live.delete(key);
    this.#now.set(found.place, (this.#now.get(found.place) ?? 0) - found.bytes);
  }

  #find(ref: PartitionRef): { readonly set: DataSet; readonly partition: number } {
    const set = this.#sets.get(ref.name);
    const found = set === undefined ? this.#given.get(partitionKey(ref)) : { set, partition: ref.partition };
    if (found === undefined) throw new Error(`${partitionKey(ref)} is of no data set of the plan`);
    return found;
  }
}

/**
 * The peaks of a whole run, by place: eq. 8 of cuMF with real sizes. After three rounds as many versions are alive at once as at
 * any later time; `keep` names the versions that are kept.
 */
export function peakOf(whole: BoundPlan, contracts: TaskContracts, keep: KeptVersions): Readonly<Record<Place, number>> {
  const bound: BoundPlan = { ...whole, visitsARow: SAMPLED_VISITS };
  const walk = new MemoryWalk(bound);
  const start = expand(bound, contracts, 'start', {});
  walk.add(start.steps);
  let [good, best] = [start.versions, start.versions];
  for (let number = 1; number <= 3; number++) {
    const kept = keptOf(keep, good, best);
    const round = expand(bound, contracts, 'round', good, { number }, kept);
    walk.add(round.steps).add(expand(bound, contracts, 'measure', round.versions).steps);
    // Peaks are those of a run whose first round stays the best.
    const next = keep.best && number > 1 ? best : round.versions;
    for (const old of kept) walk.add(expandFree(bound, contracts, 'train', old, [round.versions, next]));
    [good, best] = [round.versions, next];
  }
  walk.add(expand(bound, contracts, 'end', best).steps);
  return walk.peak;
}

