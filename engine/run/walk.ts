import { partitionKey, type PartitionRef } from '../partition.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';
import { expand, expandFree } from './expand.ts';
import type { Step, TaskContracts } from './step.ts';
import {
  type BoundPlan,
  type KeptVersions,
  keptOf,
  partBytes,
  partRef,
  type Versions,
} from '../plan/bound-plan.ts';
import type { DataSet, Stage } from '../plan/stages.ts';

/**
 * Most blocks of each row that are visited when memory is computed, unless columns are sent from device to
 * device. A place has at most two staged blocks at a time, so more blocks do not raise the peak.
 */
const SAMPLED_VISITS = 4;

/** Two parts can reuse each other's memory if their bytes differ by less than 1/POOL_SIZES. */
const POOL_SIZES = 32;

/**
 * Computes the bytes that are allocated at each place, and their peaks, while steps are added in list order.
 */
export class MemoryWalk {
  readonly #bound: BoundPlan;
  readonly #keeps: boolean;
  readonly #sets = new Map<string, DataSet>();
  readonly #given = new Map<string, { readonly set: DataSet; readonly partition: number }>();
  readonly #live = new Map<
    string,
    { readonly place: Place; readonly bytes: number; readonly pooled: boolean }
  >();
  readonly #stages: ReadonlyMap<string, Stage>;
  /** Bytes of the scratch buffers, by place and name. */
  readonly #scratch = new Map<string, number>();
  /** Freed matrices that devices with their own memory keep for reuse: the bytes of each, by place. */
  readonly #pools = new Map<Place, number[]>();
  readonly #largest = new Map<string, number>();
  readonly #now = new Map<Place, number>();
  readonly #peak = new Map<Place, number>();

  /**
   * Starts with the data sets that exist before the first step; each part is at the first of its places.
   * `pools`: false to leave out freed matrices that devices keep for reuse.
   */
  constructor(bound: BoundPlan, { pools = true }: { readonly pools?: boolean } = {}) {
    this.#bound = bound;
    this.#keeps = pools;
    this.#stages = new Map(
      Object.values(bound.phases).flatMap((stages) => stages.map((stage) => [stage.name, stage] as const)),
    );
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
      this.#hold(at, this.#stages.get(stage));
      if (action.kind === 'allocate' && action.shape.isSent)
        this.#note(`${at} ${partitionKey(action.ref)}`, HOST, 4 * action.shape.rows * action.shape.stride);
      else if (action.kind === 'allocate') this.#add(at, action.ref);
      else if (action.kind === 'move') this.#move(action);
      else if (action.kind === 'task')
        for (const ref of Object.values(action.task.outputs)) this.#add(at, ref);
      else if (action.kind === 'free' || action.kind === 'spill')
        for (const ref of action.refs) this.#remove(at, ref);
    }
    return this;
  }

  /** Adds bytes to the current ones at places, for the peak only. */
  addToPeak(bytes: Readonly<Record<Place, number>> = {}): this {
    for (const [place, more] of Object.entries(bytes))
      this.#peak.set(place, Math.max(this.#peak.get(place) ?? 0, (this.#now.get(place) ?? 0) + more));
    return this;
  }

  /** Adds the bytes that a stage keeps at a place from its first step on. */
  #hold(at: Place, stage: Stage | undefined): void {
    if (stage?.heldBytes !== undefined && !this.#live.has(`${at} ${stage.name}`))
      this.#note(`${at} ${stage.name}`, at, stage.heldBytes);
    for (const [name, bytes] of Object.entries(stage?.scratchBytes ?? {})) {
      const [key, old] = [`${at} ${name}`, this.#scratch.get(`${at} ${name}`) ?? 0];
      if (bytes <= old) continue;
      this.#scratch.set(key, bytes);
      this.#note(`${key} ${bytes}`, at, bytes - old);
    }
  }

  /**
   * Rows that arrive in a wire form (see Wire) stay in host memory until a task has read them, so a device
   * with its own memory allocates nothing for them.
   */
  #move({ to, as, wire }: Extract<Step['do'], { readonly kind: 'move' }>): void {
    if (wire === undefined || !this.#bound.devices.some(({ place, ownMemory }) => place === to && ownMemory))
      this.#add(to, as);
  }

  /** The peaks by place: of the devices that hold factors, and of the host. */
  get peak(): Readonly<Record<Place, number>> {
    return Object.fromEntries(this.#peak);
  }

  /** Bytes of all partitions now, at all places. */
  get live(): number {
    return [...this.#now.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  #add(place: Place, ref: PartitionRef): void {
    const key = `${place} ${partitionKey(ref)}`;
    if (this.#live.has(key)) return;
    const { set, partition } = this.#find(ref);
    // A device without its own memory allocates matrices and copies vectors that it is given; it reads
    // everything else in host memory.
    const owns =
      place === HOST ||
      set.layout === 'factors' ||
      this.#bound.devices.find((one) => one.place === place)?.ownMemory;
    const [home] = set.parts[partition].at;
    if (!owns && place !== home && home !== SPILL && set.columns === undefined) return;
    // A block that is at this place only for a time is assumed to have the bytes of the largest block: in a
    // later round the largest block may be at this place at the same step.
    const counted =
      set.by === 'block' && !set.parts[partition].at.includes(place)
        ? this.#largestPart(set, place)
        : partition;
    if (isStaged(set, home, place))
      this.#note(`${key} staged`, HOST, partBytes(this.#bound, set, counted, HOST));
    this.#note(
      key,
      owns || place === SPILL ? place : HOST,
      partBytes(this.#bound, set, counted, place),
      set.columns !== undefined,
    );
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

  /**
   * Records that memory is allocated at a place. `pooled`: true if a device with its own memory keeps it
   * after it is freed, for the next matrix of about the same size, as long as there is room.
   */
  #note(key: string, place: Place, bytes: number, pooled = false): void {
    const device = this.#bound.devices.find((one) => one.place === place && one.ownMemory);
    this.#live.set(key, { place, bytes, pooled: this.#keeps && pooled && device !== undefined });
    const pool = this.#pools.get(place) ?? [];
    const again = pooled ? pool.findIndex((free) => Math.abs(free - bytes) <= bytes / POOL_SIZES) : -1;
    if (again >= 0) pool.splice(again, 1);
    const now = (this.#now.get(place) ?? 0) + bytes;
    this.#now.set(place, now);
    if (now + sum(pool) > (device?.capacityBytes ?? Number.POSITIVE_INFINITY)) pool.length = 0;
    this.#peak.set(place, Math.max(this.#peak.get(place) ?? 0, now + sum(pool)));
  }

  #remove(at: Place, ref: PartitionRef): void {
    const key = `${at} ${partitionKey(ref)}`;
    this.#forget(key);
    this.#forget(`${key} staged`);
  }

  #forget(key: string): void {
    const found = this.#live.get(key);
    if (found === undefined) return;
    this.#live.delete(key);
    this.#now.set(found.place, (this.#now.get(found.place) ?? 0) - found.bytes);
    if (found.pooled) this.#pools.set(found.place, [...(this.#pools.get(found.place) ?? []), found.bytes]);
  }

  #find(ref: PartitionRef): { readonly set: DataSet; readonly partition: number } {
    const set = this.#sets.get(ref.name);
    const found = set === undefined ? this.#given.get(partitionKey(ref)) : { set, partition: ref.partition };
    if (found === undefined) throw new Error(`${partitionKey(ref)} is of no data set of the plan`);
    return found;
  }
}

/** True for a matrix from a file at a device: until the device has it, it is also in host memory. */
function isStaged({ layout }: DataSet, home: Place, place: Place): boolean {
  return home === SPILL && layout === 'factors' && place !== SPILL && place !== HOST;
}

/**
 * The peaks of a whole run, by place: eq. 8 of cuMF with real sizes. Three rounds are enough, because the
 * number of versions does not grow from the third round on. `keep`: the versions that are kept. `older`:
 * false for a run in which each round was the best so far, so that no older version was kept.
 */
export function peakOf(
  whole: BoundPlan,
  contracts: TaskContracts,
  keep: KeptVersions,
  { older = true }: { readonly older?: boolean } = {},
): Readonly<Record<Place, number>> {
  const round = whole.phases.round.map(atMostTwice);
  const bound: BoundPlan = { ...whole, visitsARow: SAMPLED_VISITS, phases: { ...whole.phases, round } };
  const walk = new MemoryWalk(bound);
  const start = expand(bound, contracts, 'start', {});
  walk.add(start.steps);
  let [good, best] = [start.versions, start.versions];
  // If the next round is sent before this round is known to be good, this round may have to be run again. So
  // its start version is kept until the next round runs.
  const overlaps = keep.start && keep.speculates === true;
  let left: readonly Versions[] = [];
  for (let number = 1; number <= 3; number++) {
    const kept = keptOf({ ...keep, start: keep.start || keep.speculates === true }, good, best);
    const ran = expand(bound, contracts, 'round', good, { number }, kept);
    walk
      .add(ran.steps)
      .add(expand(bound, contracts, 'measure', ran.versions, { number }).steps)
      .addToPeak(bound.measureBytes);
    // The peak is highest if the first round stays the best.
    const next = older && keep.best && number > 1 ? best : ran.versions;
    for (const old of overlaps ? left : kept)
      walk.add(expandFree(bound, contracts, 'train', old, [ran.versions, next, ...(overlaps ? kept : [])]));
    left = kept;
    [good, best] = [ran.versions, next];
  }
  walk.add(expand(bound, contracts, 'end', best).steps);
  return walk.peak;
}

/** A stage with two repetitions in place of more: those after the second need the same memory. */
function atMostTwice(stage: Stage): Stage {
  const { repeats } = stage;
  return repeats === undefined
    ? stage
    : { ...stage, repeats: { ...repeats, times: Math.min(2, repeats.times) } };
}

function sum(bytes: readonly number[]): number {
  return bytes.reduce((all, one) => all + one, 0);
}
