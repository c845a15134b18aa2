import type { JsonObject } from '../../json.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../plan/bound-plan.ts';
import { columnPart, howOf, partOf, useOf, usesOld, type Visit } from '../../plan/data-uses.ts';
import { type GridBlock, gridOrder, turnsOf } from '../../plan/grid-order.ts';
import type { BlockGrid, DataSet, DataUse, Slice, Stage, TaskPlan, Work } from '../../plan/stages.ts';
import { partitionKey, type PartitionRef } from '../../partition.ts';
import type { Place } from '../../plan/place.ts';
import { passRows } from '../exchanges/pass.ts';
import type { How, TaskContracts } from '../step.ts';
import type { StepList } from '../step-list.ts';
import { shapeAt, shapeOnTheWay } from './shape-at.ts';
import type { StageParts } from './stage-parts.ts';
import { type Leaving, Waves } from './waves.ts';
import type { WrittenVersions } from './written-versions.ts';

/**
 * One round: its number, from 1, and the parameters that its tasks may take; `brief`: it is measured without
 * the stages that a brief measure leaves out.
 */
export interface Round {
  readonly number: number;
  readonly params?: JsonObject;
  readonly brief?: boolean;
}

interface Use {
  readonly set: DataSet;
  readonly how: How;
  readonly old: boolean;
  readonly ofColumn: boolean;
}

/** Copies that a visit brought to its place, and those of them that go home behind it. */
interface Transients {
  readonly refs: Map<string, PartitionRef>;
  readonly home: {
    readonly set: DataSet;
    readonly partition: number;
    readonly from: Place;
    readonly ref: PartitionRef;
  }[];
  /** Parts whose version from before the round it read. */
  readonly old: { readonly set: DataSet; readonly partition: number }[];
}

/** Blocks of each row that a walk visits, at most, where they are visited row by row. */
const SAMPLED_COLUMNS = 64;

/**
 * The visits of stages: their tasks at the parts of data sets, or at the blocks of a grid, with the copies
 * that come to their places and leave behind them.
 */
export class Visits {
  readonly #bound: BoundPlan;
  readonly #contracts: TaskContracts;
  readonly #list: StepList;
  readonly #versions: WrittenVersions;
  readonly #round: Round;
  /** Of partitions that tasks give, the step of their task. */
  readonly #givenBy = new Map<string, number>();

  constructor(
    bound: BoundPlan,
    contracts: TaskContracts,
    list: StepList,
    versions: WrittenVersions,
    round: Round,
  ) {
    [this.#bound, this.#contracts, this.#list, this.#versions, this.#round] = [
      bound,
      contracts,
      list,
      versions,
      round,
    ];
  }

  /** The step of the task that gave a partition. */
  givenBy(ref: PartitionRef): number | undefined {
    return this.#givenBy.get(partitionKey(ref));
  }

  /**
   * The parts of a stage, one behind the other. `later`: the stages behind this one, which may read versions
   * from before the round.
   */
  parts(stage: Stage, tasks: readonly TaskPlan[], later: readonly Stage[]): StageParts {
    const slices = this.#bound.slices[stage.name];
    const waves = new Waves(this.#list);
    const spentSets = this.#spentBy(tasks);
    const run = (row: number) => {
      const own = slices?.[row];
      if (own !== undefined && own.length === 0) return;
      const visit = { row, fields: { ...this.#round.params } };
      const places = this.#placesOf(tasks, stage.at[row], visit);
      for (const place of places) {
        const transients: Transients = { refs: new Map(), home: [], old: [] };
        const ended = tasks.map((task) =>
          this.#task(stage, task, task.at ?? place, visit, transients, own, waves),
        );
        this.#bringHome(stage.name, transients);
        const replaced = place === places.at(-1) ? this.#replaced(transients, later) : [];
        waves.add(place, { stage: stage.name, ended, leaves: [...leavesOf(transients, place), ...replaced] });
        for (const set of spentSets)
          this.#list.free(stage.name, place, [this.#versions.current(set, partOf(set, visit).partition)]);
      }
    };
    const end = () => {
      waves.end();
      for (const set of spentSets) this.#versions.forget(set);
    };
    return { at: stage.at, run, end };
  }

  /** The data sets that tasks use for the last time. */
  #spentBy(tasks: readonly TaskPlan[]): DataSet[] {
    return tasks.flatMap(({ uses }) =>
      Object.values(uses)
        .map(useOf)
        .flatMap(({ set, version }) => (version === 'last' ? [dataSetOf(this.#bound, set)] : [])),
    );
  }

  /**
   * The place of a part in a stage, or all the places that have the part which its tasks write: each of them
   * makes it for itself.
   */
  #placesOf(tasks: readonly TaskPlan[], place: Place, visit: Visit): readonly Place[] {
    const written = tasks.flatMap(({ kernel, uses }) =>
      Object.entries(uses).flatMap(([name, use]) => {
        const { set, how } = this.#use(kernel, name, use);
        return how === 'write' && (set.parts.length > 1 || set.turns !== undefined)
          ? [set.parts[partOf(set, visit).partition].at]
          : [];
      }),
    );
    return written.find((at) => at.length > 1 && at.includes(place)) ?? [place];
  }

  /**
   * The blocks of a grid in their order: row by row where that is the order, else in one part. `waves`: those
   * of all stages of its pipeline, which may take over each other's copies of blocks.
   */
  blocks(stage: Stage, work: Extract<Work, { readonly kind: 'blocks' }>, waves: Waves): StageParts {
    const { order, grid } = work;
    const visit = this.#blockVisits(stage, work, waves);
    const spentSets = this.#spentBy(work.tasks);
    const end = () => {
      waves.end();
      this.#versions.keepUnvisited(stage.name);
      for (const set of spentSets) this.#versions.forget(set);
    };
    const inOrder = gridOrder(order, grid, work, this.#round.number);
    const pass = this.#passing(stage, work);
    if (order !== 'rows') {
      const run = () =>
        inOrder.forEach((block) => {
          visit(block);
          pass?.(block);
        });
      return { at: [stage.at[0]], run, end };
    }
    const rows = Array.from({ length: grid.rows }, (_, row) =>
      inOrder.slice(row * grid.columns, (row + 1) * grid.columns),
    );
    const run = (row: number) => {
      rows[row].forEach(visit);
      for (const set of spentSets) {
        const parts = new Set(
          rows[row].map((block) => partOf(set, { ...block, columns: grid.columns, fields: {} }).partition),
        );
        for (const part of parts)
          this.#list.free(stage.name, set.parts[part].at[0], [this.#versions.current(set, part)]);
      }
    };
    return { at: rows.map((_, row) => placeOfBlock(stage, grid, { row, column: 0 })), run, end };
  }

  /**
   * Sends the parts of a visited column to the place of the row that visits it next, in this round or in the
   * one behind it.
   */
  #passing(
    stage: Stage,
    work: Extract<Work, { readonly kind: 'blocks' }>,
  ): ((block: GridBlock) => void) | undefined {
    const { grid, passes = [] } = work;
    if (passes.length === 0) return undefined;
    const sets = passes.map((name) => dataSetOf(this.#bound, name));
    return ({ row, column }) => {
      const { number } = this.#round;
      const visitors = [
        ...turnsOf(grid.rows, column, work, number),
        turnsOf(grid.rows, column, work, number + 1)[0],
      ];
      const turn = visitors.indexOf(row);
      const next = visitors[turn + 1];
      if (next === row) return;
      for (const set of sets)
        passRows(
          this.#list,
          stage.name,
          this.#bound,
          set,
          { ref: this.#versions.current(set, column), at: stage.at[row], turn },
          [stage.at[next]],
        );
    };
  }

  #blockVisits(
    stage: Stage,
    { tasks, grid, order }: Extract<Work, { readonly kind: 'blocks' }>,
    waves: Waves,
  ): (block: GridBlock) => void {
    const { bands, blockFields, visitsARow } = this.#bound;
    const sizes = this.#bound.blockSizes?.[grid.of];
    const slices = this.#bound.slices[stage.name];
    const visits = new Int32Array(grid.rows);
    // Adjacent parts lie together, so that a sample of a row has blocks of all places. Of columns that pass
    // from place to place each is needed: a place holds what the one before it has stepped.
    const isLeftOut = (column: number, seen: number) =>
      order === 'rows'
        ? column % Math.ceil(grid.columns / SAMPLED_COLUMNS) > 0
        : order !== 'turns' && seen >= (visitsARow ?? Infinity);
    const seen = { row: new Set<number>(), column: new Set<number>() };
    return ({ row, column }) => {
      if (sizes?.[row][column] === 0 || (visitsARow !== undefined && isLeftOut(column, visits[row]))) return;
      visits[row]++;
      const own = slices?.[row * grid.columns + column];
      if (own !== undefined && own.length === 0) return;
      const place = placeOfBlock(stage, grid, { row, column });
      const [rows, columns] = [bands?.rows[row], bands?.columns[column]];
      const fields = {
        ...this.#round.params,
        ...blockFields?.[row][column],
        row,
        column,
        rowFrom: rows?.from,
        rowCount: rows && rows.to - rows.from,
        columnFrom: columns?.from,
      };
      const transients: Transients = { refs: new Map(), home: [], old: [] };
      const ended: number[] = [];
      for (const task of tasks) {
        if (task.once !== undefined) {
          const at = task.once === 'row' ? row : column;
          if (seen[task.once].has(at)) continue;
          seen[task.once].add(at);
        }
        ended.push(
          this.#task(
            stage,
            task,
            task.at ?? place,
            { row, column, columns: grid.columns, fields },
            transients,
            own,
            waves,
          ),
        );
      }
      this.#bringHome(stage.name, transients);
      waves.add(place, { stage: stage.name, ended, leaves: leavesOf(transients, place) });
    };
  }

  /**
   * One task, with its inputs copied to its place. Gives its step, which must have ended before the copies
   * are freed.
   */
  #task(
    stage: Stage,
    plan: TaskPlan,
    place: Place,
    visit: Visit,
    transients: Transients,
    slices: readonly Slice[] | undefined,
    waves: Waves,
  ): number {
    const [inputs, outputs, bands, how]: [
      Record<string, PartitionRef>,
      Record<string, PartitionRef>,
      Record<string, number>,
      Record<string, How>,
    ] = [{}, {}, {}, {}];
    for (const [name, planned] of Object.entries(plan.uses)) {
      const use = this.#use(plan.kernel, name, planned);
      const { partition, band = undefined } = use.ofColumn
        ? { partition: columnPart(use.set, visit) }
        : partOf(use.set, visit);
      const ref = this.#bring(stage, use, partition, place, transients, waves);
      if (use.old && use.set.parts.length > 1) transients.old.push({ set: use.set, partition });
      (use.how === 'read' ? inputs : outputs)[name] = ref;
      how[name] = use.how;
      if (band !== undefined) bands[name] = band;
    }
    const taken = Object.fromEntries(
      Object.entries(plan.takes ?? {}).map(([param, field]) => [param, visit.fields[field]]),
    );
    const params = { ...plan.params, ...plan.perPart?.[visit.row], ...taken };
    const id = this.#list.task(
      plan.stage ?? stage.name,
      place,
      { kernel: plan.kernel, inputs, outputs, params },
      { slices: slices?.map(({ from, to, params: own }) => ({ from, to, ...own })), bands, how },
    );
    for (const ref of Object.values(outputs)) this.#givenBy.set(partitionKey(ref), id);
    return id;
  }

  #use(kernel: string, name: string, use: string | DataUse): Use {
    const contract = this.#contracts[kernel]?.[name];
    if (contract === undefined) throw new Error(`the contract of the task ${kernel} does not name ${name}`);
    const one = useOf(use);
    return {
      set: dataSetOf(this.#bound, one.set),
      how: howOf(one, contract),
      old: one.version === 'old',
      ofColumn: one.part === 'column',
    };
  }

  /** Makes a partition available at a place, and gives its name there. */
  #bring(
    stage: Stage,
    { set, how, old }: Use,
    partition: number,
    place: Place,
    transients: Transients,
    waves: Waves,
  ): PartitionRef {
    const { at } = set.parts[partition];
    const resident = at.includes(place);
    const ended = waves.before(place);
    if (how === 'write') {
      const ref = this.#versions.next(stage.name, set, partition);
      if (set.columns !== undefined)
        this.#list.allocate(
          stage.name,
          place,
          ref,
          (resident ? shapeAt : shapeOnTheWay)(this.#bound, set, partition, place),
          resident ? [] : ended,
        );
      if (!resident) this.#transient(set, partition, place, ref, true, transients);
      return ref;
    }
    const ref = old
      ? partRef(this.#bound, set, partition, this.#versions.old[set.name])
      : this.#versions.current(set, partition);
    if (resident) return ref;
    const inPlace = how !== 'read';
    const as =
      inPlace && !this.#versions.hasWritten(set, partition)
        ? this.#versions.next(stage.name, set, partition)
        : ref;
    const key = partitionKey(as);
    if (transients.refs.has(key)) return as;
    const streams = set.by === 'block' || stage.at.indexOf(place) !== stage.at.lastIndexOf(place);
    if (inPlace || !waves.takeOver(place, ref))
      this.#list.move(stage.name, ref, at[0], place, { as, load: streams, ended });
    this.#transient(set, partition, place, as, inPlace, transients);
    return as;
  }

  #transient(
    set: DataSet,
    partition: number,
    from: Place,
    ref: PartitionRef,
    goesHome: boolean,
    transients: Transients,
  ): void {
    transients.refs.set(partitionKey(ref), ref);
    if (goesHome) transients.home.push({ set, partition, from, ref });
  }

  #bringHome(stage: string, { home }: Transients): void {
    for (const { set, partition, from, ref } of home)
      for (const place of set.parts[partition].at) this.#list.move(stage, ref, from, place, { load: true });
  }

  /**
   * Old versions of parts that the visit was the last to read: a solved part takes the place of the old one.
   */
  #replaced({ old }: Transients, later: readonly Stage[]): Leaving[] {
    return old.flatMap(({ set, partition }) =>
      later.some((one) => usesOld(one, set.name)) ? [] : this.#versions.leave(set, partition),
    );
  }
}

/** The place of a block: its own, or that of its row. */
function placeOfBlock({ at }: Stage, { rows, columns }: BlockGrid, { row, column }: GridBlock): Place {
  return (at.length > rows ? at[row * columns + column] : at[row]) ?? at[0];
}

/** The copies that a visit brought to its place, behind it: those that go home elsewhere first. */
function leavesOf({ refs, home }: Transients, place: Place): Leaving[] {
  const elsewhere = new Map(
    home.flatMap(({ from, ref }) =>
      from === place ? [] : [[partitionKey(ref), { at: from, ref }] as const],
    ),
  );
  return [
    ...elsewhere.values(),
    ...[...refs].flatMap(([key, ref]) => (elsewhere.has(key) ? [] : [{ at: place, ref }])),
  ];
}
