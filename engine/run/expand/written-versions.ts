import type { PartitionRef } from '../../partition.ts';
import { type BoundPlan, dataSetOf, partRef, type Versions } from '../../plan/bound-plan.ts';
import type { Place } from '../../plan/place.ts';
import { usesOld, type DataSet, type Stage } from '../../plan/stages.ts';
import type { StepList } from '../step-list.ts';
import type { PlacedRef } from './waves.ts';

/**
 * Tracks versions of data sets while a phase is expanded: the versions from before the phase, and the
 * versions that its stages write. Decides when to free a version: when no later stage reads it.
 */
export class WrittenVersions {
  readonly old: Versions;
  readonly #bound: BoundPlan;
  readonly #list: StepList;
  readonly #keep: readonly Versions[];
  readonly #newest: Record<string, number>;
  /** Data sets that the current stage writes, with the parts that already have the new version. */
  #written = new Map<string, Set<number>>();
  /** Parts whose old version has been freed. */
  readonly #freed = new Map<string, Set<number>>();

  /** `keep`: versions that must not be freed. */
  constructor(bound: BoundPlan, list: StepList, old: Versions, keep: readonly Versions[]) {
    [this.#bound, this.#list, this.old, this.#keep] = [bound, list, old, keep];
    this.#newest = { ...old };
  }

  get newest(): Versions {
    return this.#newest;
  }

  beginStage(): void {
    this.#written = new Map();
  }

  /**
   * Frees the versions that the given stages have replaced, and old versions that no later stage reads. The
   * stages of a pipeline end together, so all of them are given.
   */
  endStage(stages: readonly Stage[], later: readonly Stage[]): void {
    const [{ name }] = stages;
    for (const data of this.#written.keys()) {
      const set = dataSetOf(this.#bound, data);
      const old = this.old[data];
      if (set.derived || old === undefined || later.some((one) => usesOld(one, data))) continue;
      this.freeVersion(name, set, old);
    }
    // Also frees old versions of data sets that an earlier stage wrote, if this stage was their last reader.
    for (const set of this.#bound.datasets) {
      const old = this.old[set.name];
      const replaced =
        !this.#written.has(set.name) && old !== undefined && this.#newest[set.name] !== old && !set.derived;
      const read = (list: readonly Stage[]) => list.some((one) => usesOld(one, set.name));
      if (replaced && read(stages) && !read(later)) this.freeVersion(name, set, old);
    }
  }

  /** Frees the versions that these steps created. */
  freeNew(stage: string): void {
    for (const [data, version] of Object.entries(this.#newest)) {
      if (this.old[data] === version) continue;
      this.#free(stage, dataSetOf(this.#bound, data), version);
      delete this.#newest[data];
    }
  }

  /** Frees a version at all places, unless it is kept. */
  freeVersion(stage: string, set: DataSet, version: number): void {
    if (!this.#isKept(set, version)) this.#free(stage, set, version);
  }

  #isKept({ name }: DataSet, version: number): boolean {
    return this.#keep.some((one) => one[name] === version);
  }

  /**
   * Returns the old version of a part that has a newer one, at all its places; the caller frees it. Returns
   * it only once. Empty if the version must be kept.
   */
  replaced(set: DataSet, partition: number): PlacedRef[] {
    const old = this.old[set.name];
    if (set.derived || set.given || !this.hasWritten(set, partition) || this.#isKept(set, old)) return [];
    let freed = this.#freed.get(set.name);
    if (freed === undefined) this.#freed.set(set.name, (freed = new Set()));
    if (freed.has(partition)) return [];
    freed.add(partition);
    return set.parts[partition].at.map((at) => ({ at, ref: partRef(this.#bound, set, partition, old) }));
  }

  /**
   * Returns the version of a part that the stage writes. For a derived data set, older versions are freed
   * first.
   */
  next(stage: string, set: DataSet, partition: number): PartitionRef {
    let parts = this.#written.get(set.name);
    if (parts === undefined) {
      this.#written.set(set.name, (parts = new Set()));
      const old = this.#newest[set.name];
      if (set.derived && old !== undefined) this.#free(stage, set, old);
      this.#newest[set.name] = 1 + Math.max(-1, old ?? -1, ...this.#keep.map((one) => one[set.name] ?? -1));
    }
    parts.add(partition);
    return partRef(this.#bound, set, partition, this.#newest[set.name]);
  }

  /** Removes a data set whose parts were freed. */
  forget({ name }: DataSet): void {
    delete this.#newest[name];
  }

  /** True where the stage has written the part. */
  hasWritten({ name }: DataSet, partition: number): boolean {
    return this.#written.get(name)?.has(partition) ?? false;
  }

  /**
   * The newest version of a part. If the stage writes the data set part by part, it is the old version until
   * the part is written.
   */
  current(set: DataSet, partition: number): PartitionRef {
    const parts = this.#written.get(set.name);
    const version =
      parts !== undefined && !parts.has(partition) ? this.old[set.name] : this.#newest[set.name];
    if (version === undefined && !set.given) throw new Error(`no step made ${set.name}`);
    return partRef(this.#bound, set, partition, version ?? 0);
  }

  /**
   * Completes the new version of data sets that a stage updates in place: parts that the stage did not visit
   * are renamed to the new version, with the same contents.
   */
  keepUnvisited(stage: string): void {
    for (const [data, parts] of this.#written) {
      const set = dataSetOf(this.#bound, data);
      if (set.derived) continue;
      set.parts.forEach(({ at: [home] }, partition) => {
        if (parts.has(partition)) return;
        this.#list.move(stage, partRef(this.#bound, set, partition, this.old[data]), home, home, {
          as: partRef(this.#bound, set, partition, this.#newest[data]),
        });
      });
    }
  }

  #free(stage: string, set: DataSet, version: number): void {
    if (set.given) return;
    const places = new Map<Place, PartitionRef[]>();
    const freed = version === this.old[set.name] ? this.#freed.get(set.name) : undefined;
    set.parts.forEach(({ at }, partition) => {
      if (freed?.has(partition)) return;
      for (const place of at)
        places.set(place, [...(places.get(place) ?? []), partRef(this.#bound, set, partition, version)]);
    });
    for (const [place, refs] of places) this.#list.free(stage, place, refs);
  }
}
