import { partitionKey, type PartitionRef } from '../partition.ts';
import {
  type BoundPlan,
  type KeptVersions,
  keptOf,
  partBytes,
  partRef,
  type Versions,
} from '../plan/bound-plan.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';
import type { DataSet, Stage } from '../plan/stages.ts';
import { expand, expandFree } from './expand.ts';
import type { Step, TaskContracts } from './step.ts';

/**
 * Most blocks of each row that are visited when memory is computed, unless columns are sent from device to
 * device. A place has at most two staged blocks at a time, so more blocks do not raise the peak.
 */
const SAMPLED_VISITS = 4;

/** Two parts can reuse each other's memory if their bytes differ by less than 1/POOL_SIZES. */
const POOL_SIZES = 32;

interface PlannedPart {
  readonly set: DataSet;
  readonly partition: number;
}

/**
 * Computes the bytes that are allocated at each place, and their peaks, while steps are added in list order.
 */
export class MemoryWalk {
  readonly #bound: BoundPlan;
  readonly #keeps: boolean;
  readonly #devices: ReadonlyMap<Place, DeviceInfo>;
  readonly #sets = new Map<string, DataSet>();
  /** The parts of data sets that exist before the first step, by name, partition and version. */
  readonly #given = new Map<string, Map<number, PlannedPart>>();
  readonly #live = new LiveParts();
  readonly #stages: ReadonlyMap<string, Stage>;
  /** The stages whose `heldBytes` are counted, by place and name. */
  readonly #held = new Set<string>();
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
    this.#devices = new Map(bound.devices.map((device) => [device.place, device]));
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
        let named = this.#given.get(ref.name);
        if (named === undefined) this.#given.set(ref.name, (named = new Map()));
        named.set(partNumber(ref), { set, partition });
        this.#add(home, ref);
      });
    }
  }

  add(steps: readonly Step[]): this {
    for (const { stage, at, do: action } of steps) {
      this.#hold(at, this.#stages.get(stage));
      if (action.kind === 'allocate' && action.shape.isSent)
        this.#live.add(at, action.ref, this.#allocate(HOST, 4 * action.shape.rows * action.shape.stride));
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
    if (stage?.heldBytes !== undefined && !this.#held.has(`${at} ${stage.name}`)) {
      this.#held.add(`${at} ${stage.name}`);
      this.#allocate(at, stage.heldBytes);
    }
    if (stage?.scratchBytes === undefined) return;
    for (const [name, bytes] of Object.entries(stage.scratchBytes)) {
      const [key, old] = [`${at} ${name}`, this.#scratch.get(`${at} ${name}`) ?? 0];
      if (bytes <= old) continue;
      this.#scratch.set(key, bytes);
      this.#allocate(at, bytes - old);
    }
  }

  /**
   * Rows that arrive in a wire form (see Wire) stay in host memory until a task has read them, so a device
   * with its own memory allocates nothing for them.
   */
  #move({ to, as, wire }: Extract<Step['do'], { readonly kind: 'move' }>): void {
    if (wire === undefined || !this.#devices.get(to)?.ownMemory) this.#add(to, as);
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
    if (this.#live.has(place, ref)) return;
    const { set, partition } = this.#find(ref);
    // A device without its own memory allocates matrices and copies vectors that it is given; it reads
    // everything else in host memory.
    const owns = place === HOST || set.layout === 'factors' || this.#devices.get(place)?.ownMemory;
    const [home] = set.parts[partition].at;
    if (!owns && place !== home && home !== SPILL && set.columns === undefined) return;
    // A block that is at this place only for a time is assumed to have the bytes of the largest block: in a
    // later round the largest block may be at this place at the same step.
    const counted =
      set.by === 'block' && !set.parts[partition].at.includes(place)
        ? this.#largestPart(set, place)
        : partition;
    if (isStaged(set, home, place))
      this.#live.add(place, ref, this.#allocate(HOST, partBytes(this.#bound, set, counted, HOST)));
    this.#live.add(
      place,
      ref,
      this.#allocate(
        owns || place === SPILL ? place : HOST,
        partBytes(this.#bound, set, counted, place),
        set.columns !== undefined,
      ),
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
   * Counts memory that is allocated at a place. `pooled`: true if a device with its own memory keeps it
   * after it is freed, for the next matrix of about the same size, as long as there is room.
   */
  #allocate(place: Place, bytes: number, pooled = false): Allocation {
    const device = this.#devices.get(place);
    const ownMemory = device?.ownMemory ?? false;
    const pool = this.#pools.get(place) ?? [];
    const again = pooled ? pool.findIndex((free) => Math.abs(free - bytes) <= bytes / POOL_SIZES) : -1;
    if (again >= 0) pool.splice(again, 1);
    const now = (this.#now.get(place) ?? 0) + bytes;
    this.#now.set(place, now);
    const capacity = ownMemory ? (device?.capacityBytes ?? Infinity) : Infinity;
    if (now + sum(pool) > capacity) pool.length = 0;
    this.#peak.set(place, Math.max(this.#peak.get(place) ?? 0, now + sum(pool)));
    return { place, bytes, pooled: this.#keeps && pooled && ownMemory };
  }

  /** Frees a part at a place, with its staged copy in host memory. */
  #remove(at: Place, ref: PartitionRef): void {
    for (const { place, bytes, pooled } of this.#live.remove(at, ref)) {
      this.#now.set(place, (this.#now.get(place) ?? 0) - bytes);
      if (!pooled) continue;
      const pool = this.#pools.get(place);
      if (pool === undefined) this.#pools.set(place, [bytes]);
      else pool.push(bytes);
    }
  }

  #find(ref: PartitionRef): PlannedPart {
    const set = this.#sets.get(ref.name);
    const found =
      set === undefined ? this.#given.get(ref.name)?.get(partNumber(ref)) : { set, partition: ref.partition };
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

interface Allocation {
  readonly place: Place;
  readonly bytes: number;
  /** True if the place keeps the memory for reuse after it is freed. */
  readonly pooled: boolean;
}

const PARTITIONS = 2 ** 32;

/** A number for a partition and a version of a data set: cheaper as a key than partitionKey. */
function partNumber({ partition, version }: PartitionRef): number {
  return version * PARTITIONS + partition;
}

/** The allocations for each partition at each place. A partition may have several at a place. */
class LiveParts {
  readonly #places = new Map<Place, Map<string, Map<number, Allocation[]>>>();

  has(at: Place, ref: PartitionRef): boolean {
    return this.#places.get(at)?.get(ref.name)?.has(partNumber(ref)) ?? false;
  }

  add(at: Place, ref: PartitionRef, allocation: Allocation): void {
    let names = this.#places.get(at);
    if (names === undefined) this.#places.set(at, (names = new Map()));
    let parts = names.get(ref.name);
    if (parts === undefined) names.set(ref.name, (parts = new Map()));
    const key = partNumber(ref);
    const found = parts.get(key);
    if (found === undefined) parts.set(key, [allocation]);
    else found.push(allocation);
  }

  remove(at: Place, ref: PartitionRef): readonly Allocation[] {
    const parts = this.#places.get(at)?.get(ref.name);
    const key = partNumber(ref);
    const found = parts?.get(key) ?? [];
    parts?.delete(key);
    return found;
  }
}
