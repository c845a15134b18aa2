import type { JsonObject } from '../json.ts';
import { type BoundPlan, dataSetOf, partRef, strideOf, type Versions } from '../plan/bound-plan.ts';
import { partOf, usesOld, type Visit } from '../plan/data-uses.ts';
import { gridOrder } from '../plan/grid-order.ts';
import type { DataSet, PhaseName, RowRange, Stage, TaskPlan, Work } from '../plan/stages.ts';
import { partitionKey, type PartitionRef } from '../partition.ts';
import { HOST, type Place } from '../plan/place.ts';
import type { How, Step, TaskContracts } from './step.ts';
import { allGather } from './all-gather.ts';
import { StepList } from './step-list.ts';

/** One round: its number, from 1, and the parameters that its tasks may take. */
export interface Round {
  readonly number: number;
  readonly params?: JsonObject;
}

export interface Expanded {
  readonly steps: readonly Step[];
  /** The newest versions after these steps. */
  readonly versions: Versions;
}

/**
 * The steps of one phase of a plan: a pure function. Versions that a round replaces are freed behind their last reader, unless `keep`
 * names them; those that a measure makes end with it.
 */
export function expand(bound: BoundPlan, contracts: TaskContracts, phase: PhaseName, versions: Versions, round: Round = { number: 0 }, keep: readonly Versions[] = []): Expanded {
  const expansion = new Expansion(bound, contracts, versions, round, keep);
  const stages = bound.phases[phase];
  stages.forEach((stage, at) => expansion.stage(stage, stages.slice(at + 1)));
  if (phase === 'measure') expansion.freeNew(stages.at(-1)?.name ?? phase);
  return { steps: expansion.list.steps, versions: expansion.versions };
}

/** The steps that free the versions that none of `keep` has. */
export function expandFree(bound: BoundPlan, contracts: TaskContracts, stage: string, versions: Versions, keep: readonly Versions[]): readonly Step[] {
  const expansion = new Expansion(bound, contracts, versions, { number: 0 }, keep);
  for (const [data, version] of Object.entries(versions)) expansion.freeVersion(stage, dataSetOf(bound, data), version);
  return expansion.list.steps;
}

/** Copies that a visit brought to its place, and the tasks that use them. */
interface Transients {
  readonly refs: Map<string, PartitionRef>;
  readonly home: { readonly set: DataSet; readonly partition: number; readonly from: Place; readonly ref: PartitionRef }[];
}

class Expansion {
  readonly list: StepList;
  readonly #bound: BoundPlan;
  readonly #contracts: TaskContracts;
  readonly #round: Round;
  readonly #keep: readonly Versions[];
  readonly #old: Versions;
  readonly #versions: Record<string, number>;
  /** Of partitions that tasks give, the step of their task. */
  readonly #givenBy = new Map<string, number>();
  /** Data sets that the stage at hand writes, with the parts that have their new version. */
  #written = new Map<string, Set<number>>();

  constructor(bound: BoundPlan, contracts: TaskContracts, versions: Versions, round: Round, keep: readonly Versions[]) {
    this.list = new StepList(contracts);
    this.#bound = bound;
    this.#contracts = contracts;
    this.#round = round;
    this.#keep = keep;
    this.#old = versions;
    this.#versions = { ...versions };
  }

  get versions(): Versions {
    return this.#versions;
  }

  stage(stage: Stage, later: readonly Stage[]): void {
    this.#written = new Map();
    const { work } = stage;
    if (work.kind === 'tasks') this.#parts(stage, work.tasks);
    else if (work.kind === 'blocks') this.#blocks(stage, work);
    else if (work.kind === 'allocate') for (const data of work.data) this.#allocate(stage.name, data);
    else if (work.how === 'move') for (const data of work.data) this.#move(stage.name, data, work.to);
    else work.data.forEach((data, i) => this.#gather(stage.name, data, work.to[i]));
    for (const data of this.#written.keys()) {
      const set = dataSetOf(this.#bound, data);
      const old = this.#old[data];
      if (set.derived || old === undefined || later.some((one) => usesOld(one, data))) continue;
      this.freeVersion(stage.name, set, old);
    }
    // Data sets that an earlier stage wrote, and whose old version this stage was the last to read.
    for (const set of this.#bound.datasets) {
      const old = this.#old[set.name];
      const replaced = !this.#written.has(set.name) && old !== undefined && this.#versions[set.name] !== old && !set.derived;
      if (replaced && usesOld(stage, set.name) && !later.some((one) => usesOld(one, set.name))) this.freeVersion(stage.name, set, old);
    }
  }

  /** Frees the versions that these steps have made. */
  freeNew(stage: string): void {
    for (const [data, version] of Object.entries(this.#versions)) {
      if (this.#old[data] === version) continue;
      this.#free(stage, dataSetOf(this.#bound, data), version);
      delete this.#versions[data];
    }
  }

  /** Frees a version everywhere, unless it is kept. */
  freeVersion(stage: string, set: DataSet, version: number): void {
    if (!this.#keep.some((one) => one[set.name] === version)) this.#free(stage, set, version);
  }

  #free(stage: string, set: DataSet, version: number): void {
    if (set.given) return;
    const places = new Map<Place, PartitionRef[]>();
    set.parts.forEach(({ at }, partition) => {
      for (const place of at) places.set(place, [...(places.get(place) ?? []), partRef(this.#bound, set, partition, version)]);
    });
    for (const [place, refs] of places) this.list.free(stage, place, refs);
  }

  #parts(stage: Stage, tasks: readonly TaskPlan[]): void {
    const slices = this.#bound.slices[stage.name];
    stage.at.forEach((place, row) => {
      const own = slices?.[row];
      if (own !== undefined && own.length === 0) return;
      const visit = { row, fields: { ...this.#round.params } };
      const transients: Transients = { refs: new Map(), home: [] };
      for (const task of tasks) this.#task(stage, task, task.at ?? place, visit, transients, own);
      this.#bringHome(stage.name, transients);
      this.#freeTransients(stage.name, place, transients);
    });
  }

  /**
   * Two visits at a time have their copies at a place: those of the next one come while the tasks of one run, and wait until the one
   * before has left.
   */
  #blocks(stage: Stage, { tasks, order, seed, grid }: Extract<Work, { readonly kind: 'blocks' }>): void {
    const { bands, blockFields, visitsARow } = this.#bound;
    const sizes = this.#bound.blockSizes?.[grid.of];
    const last = new Map<Place, { readonly ended: readonly number[]; readonly transients: Transients }>();
    const before = new Map<Place, readonly number[]>();
    const visits = new Int32Array(grid.rows);
    const seen = { row: new Set<number>(), column: new Set<number>() };
    for (const { row, column } of gridOrder(order, grid, seed, this.#round.number)) {
      if (sizes?.[row][column] === 0 || (visitsARow !== undefined && visits[row] >= visitsARow)) continue;
      visits[row]++;
      const place = stage.at[row] ?? stage.at[0];
      const [rows, columns] = [bands?.rows[row], bands?.columns[column]];
      const fields = { ...this.#round.params, ...blockFields?.[row][column], row, column, rowFrom: rows?.from, rowCount: rows && rows.to - rows.from, columnFrom: columns?.from };
      const transients: Transients = { refs: new Map(), home: [] };
      const ended: number[] = [];
      for (const task of tasks) {
        if (task.once !== undefined) {
          const at = task.once === 'row' ? row : column;
          if (seen[task.once].has(at)) continue;
          seen[task.once].add(at);
        }
        ended.push(...this.#task(stage, task, task.at ?? place, { row, column, columns: grid.columns, fields }, transients, undefined, before.get(place)));
      }
      this.#bringHome(stage.name, transients);
      const leaving = last.get(place);
      if (leaving !== undefined) {
        const freed = this.#freeTransients(stage.name, place, leaving.transients);
        before.set(place, [...leaving.ended, ...freed]);
      }
      last.set(place, { ended, transients });
    }
    for (const [place, { transients }] of last) this.#freeTransients(stage.name, place, transients);
    this.#keepUnvisited(stage.name);
  }

  /** One task, with its inputs copied to its place. Gives the ids of its steps that must have ended before the copies are freed. */
  #task(stage: Stage, plan: TaskPlan, place: Place, visit: Visit, transients: Transients, slices: readonly RowRange[] | undefined, ended: readonly number[] = []): number[] {
    const [inputs, outputs, bands, how]: [Record<string, PartitionRef>, Record<string, PartitionRef>, Record<string, number>, Record<string, How>] = [{}, {}, {}, {}];
    for (const [name, text] of Object.entries(plan.uses)) {
      const use = this.#use(plan.kernel, name, text);
      const { partition, band } = partOf(use.set, visit);
      const ref = this.#bring(stage.name, use, partition, place, transients, ended);
      (use.how === 'read' ? inputs : outputs)[name] = ref;
      how[name] = use.how;
      if (band !== undefined) bands[name] = band;
    }
    const taken = Object.fromEntries(Object.entries(plan.takes ?? {}).map(([param, field]) => [param, visit.fields[field]]));
    const params = { ...plan.params, ...plan.perPart?.[visit.row], ...taken };
    const id = this.list.task(plan.stage ?? stage.name, place, { kernel: plan.kernel, inputs, outputs, params }, { slices: slices?.map(({ from, to }) => ({ from, to })), bands, how });
    for (const ref of Object.values(outputs)) this.#givenBy.set(partitionKey(ref), id);
    return [id];
  }

  #use(kernel: string, name: string, text: string): Use {
    const [data, mode] = text.split('@') as [string, 'old' | 'here' | 'shared' | undefined];
    const contract = this.#contracts[kernel]?.[name];
    if (contract === undefined) throw new Error(`the contract of the task ${kernel} does not name ${name}`);
    const how = mode === 'old' ? 'read' : mode === 'here' ? 'alone' : mode === 'shared' ? 'shared' : contract;
    return { set: dataSetOf(this.#bound, data), how, old: mode === 'old' };
  }

  /** Makes a partition available at a place, and gives its name there. */
  #bring(stage: string, { set, how, old }: Use, partition: number, place: Place, transients: Transients, ended: readonly number[]): PartitionRef {
    const { at } = set.parts[partition];
    const resident = at.includes(place);
    if (how === 'write') {
      const ref = this.#newVersion(stage, set, partition);
      if (set.columns !== undefined) this.list.allocate(stage, place, ref, this.#shape(set, partition, place), ended);
      if (!resident) this.#transient(set, partition, place, ref, true, transients);
      return ref;
    }
    const version = old ? this.#old[set.name] : this.#currentOf(set, partition);
    const ref = partRef(this.#bound, set, partition, version);
    if (resident) return ref;
    const inPlace = how !== 'read';
    const as = inPlace && !this.#written.get(set.name)?.has(partition) ? this.#newVersion(stage, set, partition) : ref;
    const key = partitionKey(as);
    if (transients.refs.has(key)) return as;
    this.list.move(stage, ref, at[0], place, { as, load: set.by === 'block', ended });
    this.#transient(set, partition, place, as, inPlace, transients);
    return as;
  }

  #transient(set: DataSet, partition: number, from: Place, ref: PartitionRef, goesHome: boolean, transients: Transients): void {
    transients.refs.set(partitionKey(ref), ref);
    if (goesHome) transients.home.push({ set, partition, from, ref });
  }

  #bringHome(stage: string, { home }: Transients): void {
    for (const { set, partition, from, ref } of home) for (const place of set.parts[partition].at) this.list.move(stage, ref, from, place);
  }

  #freeTransients(stage: string, place: Place, { refs, home }: Transients): number[] {
    const elsewhere = new Map(home.flatMap(({ from, ref }) => (from === place ? [] : [[partitionKey(ref), { from, ref }] as const])));
    const ids = [...elsewhere.values()].map(({ from, ref }) => this.list.free(stage, from, [ref]));
    const here = [...refs].flatMap(([key, ref]) => (elsewhere.has(key) ? [] : [ref]));
    if (here.length > 0) ids.push(this.list.free(stage, place, here));
    return ids;
  }

  /** The version that the stage writes of a data set; older ones of a derived set go first. */
  #newVersion(stage: string, set: DataSet, partition: number): PartitionRef {
    let parts = this.#written.get(set.name);
    if (parts === undefined) {
      this.#written.set(set.name, (parts = new Set()));
      const old = this.#versions[set.name];
      if (set.derived && old !== undefined) this.#free(stage, set, old);
      this.#versions[set.name] = 1 + Math.max(-1, old ?? -1, ...this.#keep.map((one) => one[set.name] ?? -1));
    }
    parts.add(partition);
    return partRef(this.#bound, set, partition, this.#versions[set.name]);
  }

  /** The newest version of a part: of a data set that the stage writes part by part, the old one until it is the part's turn. */
  #currentOf(set: DataSet, partition: number): number {
    const parts = this.#written.get(set.name);
    const version = parts !== undefined && !parts.has(partition) ? this.#old[set.name] : this.#versions[set.name];
    if (version === undefined && !set.given) throw new Error(`no step made ${set.name}`);
    return version ?? 0;
  }

  /** Parts of which a stage in place visited none are the new version's too. */
  #keepUnvisited(stage: string): void {
    for (const [data, parts] of this.#written) {
      const set = dataSetOf(this.#bound, data);
      if (set.derived) continue;
      set.parts.forEach(({ at: [home] }, partition) => {
        if (parts.has(partition)) return;
        this.list.move(stage, partRef(this.#bound, set, partition, this.#old[data]), home, home, { as: partRef(this.#bound, set, partition, this.#versions[data]) });
      });
    }
  }

  #shape(set: DataSet, partition: number, place: Place) {
    const { layout, columns = 1, contents } = set;
    const { strideStep = 1 } = this.#bound.devices.find((one) => one.place === place) ?? {};
    return { ...(layout === 'factors' ? {} : { layout }), rows: set.parts[partition].rows, columns, stride: strideOf(set, strideStep), ...(contents ? { contents } : {}) };
  }

  #allocate(stage: string, data: string): void {
    const set = dataSetOf(this.#bound, data);
    set.parts.forEach(({ at: [home] }, partition) => this.list.allocate(stage, home, this.#newVersion(stage, set, partition), this.#shape(set, partition, home)));
  }

  #move(stage: string, data: string, to: 'places' | 'host' | 'from-host'): void {
    const set = dataSetOf(this.#bound, data);
    set.parts.forEach(({ at: [home, ...others] }, partition) => {
      if (to === 'from-host') {
        const ref = this.#newVersion(stage, set, partition);
        if (home === HOST) return;
        this.list.move(stage, ref, HOST, home);
        this.list.free(stage, HOST, [ref]);
        return;
      }
      const ref = partRef(this.#bound, set, partition, this.#currentOf(set, partition));
      if (to === 'host') this.list.handOut(stage, ref, home, set.columns === undefined ? this.#givenBy.get(partitionKey(ref)) : undefined);
      else for (const place of others) this.list.move(stage, ref, home, place, { load: true });
    });
  }

  #gather(stage: string, data: string, to: string): void {
    const [from, whole] = [dataSetOf(this.#bound, data), dataSetOf(this.#bound, to)];
    const parts = from.parts.map(({ at: [home] }, partition) => ({ ref: partRef(this.#bound, from, partition, this.#currentOf(from, partition)), home }));
    allGather(this.list, stage, parts, () => this.#newVersion(stage, whole, 0), whole.parts[0].at);
  }
}

interface Use {
  readonly set: DataSet;
  readonly how: How;
  readonly old: boolean;
}
