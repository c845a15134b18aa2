import type { JsonObject } from '../json.ts';
import { type MatrixShape, partitionKey, type PartitionRef } from '../partition.ts';
import type { Task } from '../task.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';
import type { Action, How, Step, TaskContracts, Wire } from './step.ts';

/** The band number for the whole of a partition. */
const WHOLE = -1;

/**
 * The steps that use a partition at a place: its latest writers, and the readers since then. Steps are
 * grouped by the band (range of adjacent rows) that they use.
 */
interface Touched {
  readonly writers: Map<number, number[]>;
  readonly readers: Map<number, number[]>;
}

export interface TaskOptions {
  /** Default: one slice without its own parameters. */
  readonly slices?: readonly JsonObject[];
  /**
   * For a task that changes only a band of a partition's rows: the band's number, by the task's name for the
   * partition. Steps on different bands do not wait for each other. Default: the whole partition.
   */
  readonly bands?: Readonly<Record<string, number>>;
  /** Overrides of the contract's uses. */
  readonly how?: Readonly<Record<string, How>>;
  readonly ended?: readonly number[];
}

/**
 * Collects steps in the order in which a single thread would run them, and derives the edges. A step waits
 * for the writers of the partitions that it reads, and for the readers and writers of the partitions that it
 * writes. A partition that no step of the list creates exists before the first step.
 */
export class StepList {
  readonly #steps: Step[] = [];
  readonly #touched = new Map<string, Touched>();
  readonly #contracts: TaskContracts;
  /**
   * The latest free at each place. Later allocations at the place, and moves to it, may use that memory, so
   * they wait for it.
   */
  readonly #freed = new Map<Place, number>();
  readonly #hasEdges: boolean;

  /** `edges`: false to leave the edges out, for steps that are only read in list order. */
  constructor(contracts: TaskContracts, { edges = true }: { readonly edges?: boolean } = {}) {
    [this.#contracts, this.#hasEdges] = [contracts, edges];
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  task(
    stage: string,
    at: Place,
    task: Task,
    { slices = [{}], bands = {}, how = {}, ended = [] }: TaskOptions = {},
  ): number {
    const contract = this.#contracts[task.kernel];
    if (contract === undefined) throw new Error(`the task ${task.kernel} has no contract`);
    const uses: Touch[] = [];
    const refs: Record<string, PartitionRef> = { ...task.inputs, ...task.outputs };
    for (const [name, ref] of Object.entries(refs)) {
      const use = how[name] ?? contract[name] ?? contract[name.replace(/\.\d+$/, '.*')];
      if (use === undefined) throw new Error(`the contract of the task ${task.kernel} does not name ${name}`);
      uses.push({ at, ref, writes: use !== 'read', band: bands[name] });
    }
    return this.#add(stage, at, { kind: 'task', task, slices }, uses, ended);
  }

  allocate(
    stage: string,
    at: Place,
    ref: PartitionRef,
    shape: MatrixShape,
    ended: readonly number[] = [],
  ): number {
    return this.#add(stage, at, { kind: 'allocate', ref, shape }, [{ at, ref, writes: true }], ended);
  }

  /** `as`: the name at the new place; default: the same. */
  move(
    stage: string,
    ref: PartitionRef,
    from: Place,
    to: Place,
    {
      as = ref,
      load = false,
      wire,
      ended = [],
    }: {
      readonly as?: PartitionRef;
      readonly load?: boolean;
      readonly wire?: Wire;
      readonly ended?: readonly number[];
    } = {},
  ): number {
    const uses = [
      { at: from, ref, writes: false },
      { at: to, ref: as, writes: true },
    ];
    return this.#add(
      stage,
      to === HOST ? from : to,
      { kind: 'move', ref, from, to, as, load, ...(wire ? { wire } : {}) },
      uses,
      ended,
    );
  }

  /**
   * Adds a partition to the results of the run. `by`: for a partition that is not a matrix, the task in the
   * list that makes it; for a matrix, memory that a device may use (see Action).
   */
  handOut(stage: string, ref: PartitionRef, from: Place, by?: number | Float32Array): number {
    const given = typeof by === 'number';
    return this.#add(
      stage,
      from,
      { kind: 'hand-out', ref, given, into: given ? undefined : by },
      [{ at: from, ref, writes: false }],
      given ? [by] : [],
    );
  }

  spill(stage: string, at: Place, refs: readonly PartitionRef[]): number {
    return this.#add(
      stage,
      at,
      { kind: 'spill', refs },
      refs.map((ref) => ({ at, ref, writes: true })),
    );
  }

  /**
   * Frees partitions; adds no step if there are none. `copies`: true if they were sent here by another
   * device; no allocation waits for their memory.
   */
  free(
    stage: string,
    at: Place,
    refs: readonly PartitionRef[],
    { ended = [], copies = false }: { readonly ended?: readonly number[]; readonly copies?: boolean } = {},
  ): number | undefined {
    if (refs.length === 0) return undefined;
    const id = this.#add(
      stage,
      at,
      { kind: 'free', refs },
      refs.map((ref) => ({ at, ref, writes: true })),
      ended,
    );
    if (!copies) this.#freed.set(at, id);
    return id;
  }

  #add(
    stage: string,
    at: Place,
    action: Action,
    uses: readonly Touch[],
    given: readonly number[] = [],
  ): number {
    const id = this.#steps.length;
    if (!this.#hasEdges) {
      this.#steps.push({ id, stage, at, after: [], ended: [], do: action });
      return id;
    }
    const after = new Set<number>();
    const ended = new Set<number>(given);
    for (const use of uses) {
      for (const before of this.#touch(use, id)) {
        if (before === id) continue;
        // A place executes the actions on its own partitions in the order in which they are sent, so it is
        // enough that the earlier step was sent before. Otherwise the earlier step must have ended.
        if (use.at === at && at !== HOST && sentInOrder(this.#steps[before], at)) after.add(before);
        else ended.add(before);
      }
    }
    const place = action.kind === 'move' ? action.to : at;
    const freed = takesMemory(action, place) ? this.#freed.get(place) : undefined;
    if (freed !== undefined) (place === at ? after : ended).add(freed);
    for (const before of ended) after.delete(before);
    this.#steps.push({ id, stage, at, after: [...after], ended: [...ended], do: action });
    return id;
  }

  /** Records the use; returns the steps that must come before it. */
  #touch({ at, ref, writes, band = WHOLE }: Touch, id: number): number[] {
    const key = `${at} ${partitionKey(ref)}`;
    let touched = this.#touched.get(key);
    if (touched === undefined) this.#touched.set(key, (touched = { writers: new Map(), readers: new Map() }));
    const { writers, readers } = touched;
    // Only the latest writer of the band matters: a writer of the whole partition removes the bands'
    // writers.
    const before =
      band === WHOLE ? [...writers.values()].flat() : [...(writers.get(band) ?? writers.get(WHOLE) ?? [])];
    if (!writes) {
      const others = readers.get(band);
      if (others === undefined) readers.set(band, [id]);
      else others.push(id);
      return before;
    }
    for (const ids of band === WHOLE ? readers.values() : [readers.get(band), readers.get(WHOLE)])
      if (ids !== undefined) before.push(...ids);
    if (band === WHOLE) {
      writers.clear();
      readers.clear();
    } else readers.delete(band);
    writers.set(band, [id]);
    return before;
  }
}

/**
 * True for a step that may need the memory that the latest free released. Frees are executed in order, so
 * the latest one ends last.
 */
function takesMemory(action: Action, place: Place): boolean {
  if (place === HOST || place === SPILL || action.kind === 'hand-out') return false;
  return action.kind !== 'move' || action.wire === undefined;
}

/**
 * True if the step's partition can be used at the place as soon as the step has been sent. A partition from
 * another device arrives later.
 */
function sentInOrder({ at, do: action }: Step, place: Place): boolean {
  return at === place && (action.kind !== 'move' || action.to !== place || action.from === HOST);
}

interface Touch {
  readonly at: Place;
  readonly ref: PartitionRef;
  readonly writes: boolean;
  readonly band?: number;
}
