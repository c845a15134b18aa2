import type { JsonObject } from '../../json.ts';
import { type BoundPlan, dataSetOf, partRef, strideOf } from '../../plan/bound-plan.ts';
import { partOf, type Visit } from '../../plan/data-uses.ts';
import { gridOrder } from '../../plan/grid-order.ts';
import type { DataSet, RowRange, Stage, TaskPlan, Work } from '../../plan/stages.ts';
import { type MatrixShape, partitionKey, type PartitionRef } from '../../partition.ts';
import { HOST, type Place } from '../../plan/place.ts';
import type { How, TaskContracts } from '../step.ts';
import type { StepList } from '../step-list.ts';
import type { WrittenVersions } from './written-versions.ts';

/** One round: its number, from 1, and the parameters that its tasks may take. */
export interface Round {
  readonly number: number;
  readonly params?: JsonObject;
}

interface Use {
  readonly set: DataSet;
  readonly how: How;
  readonly old: boolean;
}

/** Copies that a visit brought to its place, and those of them that go home behind it. */
interface Transients {
  readonly refs: Map<string, PartitionRef>;
  readonly home: { readonly set: DataSet; readonly partition: number; readonly from: Place; readonly ref: PartitionRef }[];
}

/** The visits of stages: their tasks at the parts of data sets, or at the blocks of a grid, with the copies that come to their places and leave behind them. */
export class Visits {
  readonly #bound: BoundPlan;
  readonly #contracts: TaskContracts;
  readonly #list: StepList;
  readonly #versions: WrittenVersions;
  readonly #round: Round;
  /** Of partitions that tasks give, the step of their task. */
  readonly #givenBy = new Map<string, number>();

  constructor(bound: BoundPlan, contracts: TaskContracts, list: StepList, versions: WrittenVersions, round: Round) {
    [this.#bound, this.#contracts, this.#list, this.#versions, this.#round] = [bound, contracts, list, versions, round];
  }

  /** The step of the task that gave a partition. */
  givenBy(ref: PartitionRef): number | undefined {
    return this.#givenBy.get(partitionKey(ref));
  }

  parts(stage: Stage, tasks: readonly TaskPlan[]): void {
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
  blocks(stage: Stage, { tasks, order, seed, grid }: Extract<Work, { readonly kind: 'blocks' }>): void {
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
    this.#versions.keepUnvisited(stage.name);
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
    const id = this.#list.task(plan.stage ?? stage.name, place, { kernel: plan.kernel, inputs, outputs, params }, { slices: slices?.map(({ from, to }) => ({ from, to })), bands, how });
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
      const ref = this.#versions.next(stage, set, partition);
      if (set.columns !== undefined) this.#list.allocate(stage, place, ref, shapeAt(this.#bound, set, partition, place), ended);
      if (!resident) this.#transient(set, partition, place, ref, true, transients);
      return ref;
    }
    const ref = old ? partRef(this.#bound, set, partition, this.#versions.old[set.name]) : this.#versions.current(set, partition);
    if (resident) return ref;
    const inPlace = how !== 'read';
    const as = inPlace && !this.#versions.hasWritten(set, partition) ? this.#versions.next(stage, set, partition) : ref;
    const key = partitionKey(as);
    if (transients.refs.has(key)) return as;
    this.#list.move(stage, ref, at[0], place, { as, load: set.by === 'block', ended });
    this.#transient(set, partition, place, as, inPlace, transients);
    return as;
  }

  #transient(set: DataSet, partition: number, from: Place, ref: PartitionRef, goesHome: boolean, transients: Transients): void {
    transients.refs.set(partitionKey(ref), ref);
    if (goesHome) transients.home.push({ set, partition, from, ref });
  }

  #bringHome(stage: string, { home }: Transients): void {
    for (const { set, partition, from, ref } of home) for (const place of set.parts[partition].at) this.#list.move(stage, ref, from, place);
  }

  #freeTransients(stage: string, place: Place, { refs, home }: Transients): number[] {
    const elsewhere = new Map(home.flatMap(({ from, ref }) => (from === place ? [] : [[partitionKey(ref), { from, ref }] as const])));
    const ids = [...elsewhere.values()].map(({ from, ref }) => this.#list.free(stage, from, [ref]));
    const here = [...refs].flatMap(([key, ref]) => (elsewhere.has(key) ? [] : [ref]));
    if (here.length > 0) ids.push(this.#list.free(stage, place, here));
    return ids;
  }
}

/** The shape of a part of a matrix at a place. */
export function shapeAt({ devices }: BoundPlan, set: DataSet, partition: number, place: Place): MatrixShape {
  const { layout, columns = 1, contents } = set;
  const { strideStep = 1 } = devices.find((one) => one.place === place) ?? {};
  return { ...(layout === 'factors' ? {} : { layout }), rows: set.parts[partition].rows, columns, stride: strideOf(set, strideStep), ...(contents ? { contents } : {}), ...(set.packed && place === HOST ? { packed: true } : {}) };
}
