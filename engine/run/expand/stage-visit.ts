import { partitionKey, type PartitionRef, type MatrixShape } from '../../partition.ts';
import { type BoundPlan, dataSetOf, partRef, strideOf } from '../../plan/bound-plan.ts';
import { type Place, HOST } from '../../plan/place.ts';
import {
  columnPart,
  howOf,
  partOf,
  useOf,
  usesOld,
  type Visit,
  type DataSet,
  type DataUse,
  type Slice,
  type Stage,
  type TaskPlan,
} from '../../plan/stages.ts';
import type { StepList } from '../step-list.ts';
import type { How, TaskContracts } from '../step.ts';
import type { PlacedRef, Waves } from './waves.ts';
import type { WrittenVersions } from './written-versions.ts';

/** The objects that expanding a stage into steps reads and changes. */
export interface Expansion {
  readonly bound: BoundPlan;
  readonly contracts: TaskContracts;
  readonly list: StepList;
  readonly versions: WrittenVersions;
  /** The step of the task that returned a partition to the host, by partition. */
  readonly givenBy: Map<string, number>;
}

interface Use {
  readonly set: DataSet;
  readonly how: How;
  readonly old: boolean;
  readonly ofColumn: boolean;
}

/** Resolves a task's use of a data set from the plan and the kernel's contract. */
export function resolveUse(
  { bound, contracts }: Expansion,
  kernel: string,
  name: string,
  use: string | DataUse,
): Use {
  const contract = contracts[kernel]?.[name];
  if (contract === undefined) throw new Error(`the contract of the task ${kernel} does not name ${name}`);
  const one = useOf(use);
  return {
    set: dataSetOf(bound, one.set),
    how: howOf(one, contract),
    old: one.version === 'old',
    ofColumn: one.part === 'column',
  };
}

/**
 * One visit of a stage: its tasks for one part, or for one block of a grid. Adds the tasks, and the copies of
 * data that they need at their places.
 */
export class StageVisit {
  readonly #expansion: Expansion;
  readonly #stage: Stage;
  readonly #visit: Visit;
  readonly #slices: readonly Slice[] | undefined;
  readonly #waves: Waves;
  /** Copies made at a place for this visit. */
  readonly #copies = new Map<string, PartitionRef>();
  /** Copies that are sent to their home after the visit. */
  readonly #home: {
    readonly set: DataSet;
    readonly partition: number;
    readonly from: Place;
    readonly ref: PartitionRef;
  }[] = [];
  /** The parts whose version from before the round was read. */
  readonly #old: { readonly set: DataSet; readonly partition: number }[] = [];
  /** The steps of the tasks. Copies are freed only after these have ended. */
  readonly ended: number[] = [];

  constructor(
    expansion: Expansion,
    stage: Stage,
    visit: Visit,
    slices: readonly Slice[] | undefined,
    waves: Waves,
  ) {
    [this.#expansion, this.#stage, this.#visit] = [expansion, stage, visit];
    [this.#slices, this.#waves] = [slices, waves];
  }

  /** Adds one task; its inputs are copied to its place. */
  task(plan: TaskPlan, place: Place): void {
    const { list, givenBy } = this.#expansion;
    const inputs: Record<string, PartitionRef> = {};
    const outputs: Record<string, PartitionRef> = {};
    const bands: Record<string, number> = {};
    const how: Record<string, How> = {};
    for (const [name, planned] of Object.entries(plan.uses)) {
      const use = resolveUse(this.#expansion, plan.kernel, name, planned);
      const { partition, band = undefined } = use.ofColumn
        ? { partition: columnPart(use.set, this.#visit) }
        : partOf(use.set, this.#visit);
      const ref = this.#provide(use, partition, place);
      if (use.old && use.set.parts.length > 1) this.#old.push({ set: use.set, partition });
      (use.how === 'read' ? inputs : outputs)[name] = ref;
      how[name] = use.how;
      if (band !== undefined) bands[name] = band;
    }
    const { row, fields } = this.#visit;
    const taken = Object.fromEntries(
      Object.entries(plan.takes ?? {}).map(([param, field]) => [param, fields[field]]),
    );
    const params = { ...plan.params, ...plan.perPart?.[row], ...taken };
    const slices = this.#slices?.map(({ from, to, params: own }) => ({ from, to, ...own }));
    const task = { kernel: plan.kernel, inputs, outputs, params };
    const id = list.task(plan.stage ?? this.#stage.name, place, task, { slices, bands, how });
    for (const ref of Object.values(outputs)) givenBy.set(partitionKey(ref), id);
    this.ended.push(id);
  }

  /** Parts that were written at another place are sent to the places that hold them. */
  sendHome(): void {
    for (const { set, partition, from, ref } of this.#home)
      for (const place of set.parts[partition].at)
        this.#expansion.list.move(this.#stage.name, ref, from, place, { load: true });
  }

  /**
   * The copies to free after the visit. Copies of parts that were written at other places are first, then
   * the copies at the visit's own place.
   */
  toFree(place: Place): PlacedRef[] {
    const elsewhere = new Map(
      this.#home.flatMap(({ from, ref }) =>
        from === place ? [] : [[partitionKey(ref), { at: from, ref }] as const],
      ),
    );
    const here = [...this.#copies].flatMap(([key, ref]) => (elsewhere.has(key) ? [] : [{ at: place, ref }]));
    return [...elsewhere.values(), ...here];
  }

  /**
   * Returns the old versions of parts that this visit has replaced, so that they can be freed. A version that
   * a stage of `later` still reads is not among them.
   */
  replaced(later: readonly Stage[]): PlacedRef[] {
    return this.#old.flatMap(({ set, partition }) =>
      later.some((one) => usesOld(one, set.name)) ? [] : this.#expansion.versions.replaced(set, partition),
    );
  }

  /** Makes a partition available at a place; returns its name there. */
  #provide(use: Use, partition: number, place: Place): PartitionRef {
    return use.how === 'write'
      ? this.#allocate(use.set, partition, place)
      : this.#copy(use, partition, place);
  }

  #allocate(set: DataSet, partition: number, place: Place): PartitionRef {
    const { bound, list, versions } = this.#expansion;
    const isHome = set.parts[partition].at.includes(place);
    const ref = versions.next(this.#stage.name, set, partition);
    if (set.columns !== undefined) {
      const shape = (isHome ? shapeAt : shapeOnTheWay)(bound, set, partition, place);
      list.allocate(this.#stage.name, place, ref, shape, isHome ? [] : this.#waves.before(place));
    }
    if (!isHome) this.#keep(set, partition, place, ref, true);
    return ref;
  }

  #copy({ set, how, old }: Use, partition: number, place: Place): PartitionRef {
    const { bound, list, versions } = this.#expansion;
    const { at } = set.parts[partition];
    const ref = old
      ? partRef(bound, set, partition, versions.old[set.name])
      : versions.current(set, partition);
    if (at.includes(place)) return ref;
    const ended = this.#waves.before(place);
    const inPlace = how !== 'read';
    const isNew = inPlace && !versions.hasWritten(set, partition);
    const as = isNew ? versions.next(this.#stage.name, set, partition) : ref;
    if (this.#copies.has(partitionKey(as))) return as;
    const places = this.#stage.at;
    const load = set.by === 'block' || places.indexOf(place) !== places.lastIndexOf(place);
    if (inPlace || !this.#waves.takeOver(place, ref))
      list.move(this.#stage.name, ref, at[0], place, { as, load, ended });
    this.#keep(set, partition, place, as, inPlace);
    return as;
  }

  #keep(set: DataSet, partition: number, from: Place, ref: PartitionRef, goesHome: boolean): void {
    this.#copies.set(partitionKey(ref), ref);
    if (goesHome) this.#home.push({ set, partition, from, ref });
  }
}

/**
 * The shape of a part that is computed at one place and then sent to its home, the first of its places. If
 * only the home has its own memory, the rows already get the home's stride.
 */
function shapeOnTheWay(bound: BoundPlan, set: DataSet, partition: number, place: Place): MatrixShape {
  const owns = (at: Place) => bound.devices.find((one) => one.place === at)?.ownMemory ?? false;
  const [home] = set.parts[partition].at;
  return set.layout === 'factors' && owns(home) && !owns(place)
    ? { ...shapeAt(bound, set, partition, home), isSent: true }
    : shapeAt(bound, set, partition, place);
}

export function shapeAt({ devices }: BoundPlan, set: DataSet, partition: number, place: Place): MatrixShape {
  const { layout, columns = 1, contents, half } = set;
  const { strideStep = 1 } = devices.find((one) => one.place === place) ?? {};
  return {
    ...(layout === 'factors' ? {} : { layout }),
    rows: set.parts[partition].rows,
    columns,
    stride: strideOf(set, strideStep),
    ...(contents ? { contents } : {}),
    ...(half === 'only' ? { halfOnly: true } : {}),
    ...(set.packed && place === HOST ? { packed: true } : {}),
  };
}
