import type { JsonObject } from '../../json.ts';
import { partitionKey, type PartitionRef } from '../../partition.ts';
import { type BoundPlan, dataSetOf } from '../../plan/bound-plan.ts';
import { type GridBlock, gridOrder, turnsOf } from '../../plan/grid-order.ts';
import type { Place } from '../../plan/place.ts';
import {
  partOf,
  useOf,
  type Visit,
  type DataSet,
  type Stage,
  type TaskPlan,
  type Work,
} from '../../plan/stages.ts';
import { passRows } from '../exchanges/send-rows.ts';
import type { StepList } from '../step-list.ts';
import type { StageParts } from './pipeline.ts';
import { placeOfBlock, sampleOf } from './sampled-blocks.ts';
import { type Expansion, resolveUse, StageVisit } from './stage-visit.ts';
import { Waves } from './waves.ts';
import type { WrittenVersions } from './written-versions.ts';

/**
 * A round (training iteration): its number, from 1, and the parameters that its tasks may take. `brief`: true
 * for a measure that skips the stages whose values the round itself has computed.
 */
export interface Round {
  readonly number: number;
  readonly params?: JsonObject;
  readonly brief?: boolean;
}

/**
 * Adds the visits of stages: tasks for each part of the data sets, or for each block of a grid, with the
 * copies of data that the tasks need at their places.
 */
export class Visits {
  readonly #expansion: Expansion;
  readonly #bound: BoundPlan;
  readonly #list: StepList;
  readonly #versions: WrittenVersions;
  readonly #round: Round;

  constructor(expansion: Omit<Expansion, 'givenBy'>, round: Round) {
    this.#expansion = { ...expansion, givenBy: new Map() };
    ({ bound: this.#bound, list: this.#list, versions: this.#versions } = expansion);
    this.#round = round;
  }

  /** The step of the task that returned a partition to the host. */
  givenBy(ref: PartitionRef): number | undefined {
    return this.#expansion.givenBy.get(partitionKey(ref));
  }

  /**
   * The parts of a stage in order. `later`: the stages after it, which may still read versions from before
   * the round.
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
        const one = new StageVisit(this.#expansion, stage, visit, own, waves);
        for (const task of tasks) one.task(task, task.at ?? place);
        one.sendHome();
        const replaced = place === places.at(-1) ? one.replaced(later) : [];
        waves.add(place, {
          stage: stage.name,
          ended: one.ended,
          toFree: [...one.toFree(place), ...replaced],
        });
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
   * The places at which a part's tasks run. If several places hold the part that is written, each of them
   * computes it.
   */
  #placesOf(tasks: readonly TaskPlan[], place: Place, visit: Visit): readonly Place[] {
    const written = tasks.flatMap(({ kernel, uses }) =>
      Object.entries(uses).flatMap(([name, use]) => {
        const { set, how } = resolveUse(this.#expansion, kernel, name, use);
        return how === 'write' && (set.parts.length > 1 || set.turns !== undefined)
          ? [set.parts[partOf(set, visit).partition].at]
          : [];
      }),
    );
    return written.find((at) => at.length > 1 && at.includes(place)) ?? [place];
  }

  /**
   * The visits of a stage to the blocks of a grid. With the order `rows` there is one part for each row,
   * else one part in total. `waves`: shared by the stages of a pipeline, so that they can reuse each other's
   * copies of blocks.
   */
  blocks(stage: Stage, work: Extract<Work, { readonly kind: 'blocks' }>, waves: Waves): StageParts {
    const { order, grid } = work;
    const visit = this.#blockVisits(stage, work, waves);
    const sample =
      this.#bound.visitsARow !== undefined && order === 'rows' ? sampleOf(this.#bound, stage) : undefined;
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
    const rowOf = (row: number) => inOrder.slice(row * grid.columns, (row + 1) * grid.columns);
    const run = (row: number) => {
      if (sample === undefined) rowOf(row).forEach(visit);
      else if (sample.rows.has(row)) sample.columns.forEach((column) => visit({ row, column }));
      for (const set of spentSets) {
        const parts = new Set(
          rowOf(row).map((block) => partOf(set, { ...block, columns: grid.columns, fields: {} }).partition),
        );
        for (const part of parts)
          this.#list.free(stage.name, set.parts[part].at[0], [this.#versions.current(set, part)]);
      }
    };
    const at = Array.from({ length: grid.rows }, (_, row) => placeOfBlock(stage, grid, { row, column: 0 }));
    return { at, run, end };
  }

  /**
   * After a visit, sends the column's parts to the place whose row visits the column next, in this round or
   * in the next one.
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
    work: Extract<Work, { readonly kind: 'blocks' }>,
    waves: Waves,
  ): (block: GridBlock) => void {
    const { tasks, grid } = work;
    const slices = this.#bound.slices[stage.name];
    const isLeftOut = this.#sampling(work);
    const seen = { row: new Set<number>(), column: new Set<number>() };
    /** False for a task with `once` that has already run for the block's row, or column. */
    const isDue = ({ once }: TaskPlan, block: GridBlock) => {
      if (once === undefined) return true;
      if (seen[once].has(block[once])) return false;
      seen[once].add(block[once]);
      return true;
    };
    return (block) => {
      if (isLeftOut(block)) return;
      const { row, column } = block;
      const own = slices?.[row * grid.columns + column];
      if (own !== undefined && own.length === 0) return;
      const place = placeOfBlock(stage, grid, block);
      const visit = { row, column, columns: grid.columns, fields: this.#fieldsOf(block) };
      const one = new StageVisit(this.#expansion, stage, visit, own, waves);
      for (const task of tasks) if (isDue(task, block)) one.task(task, task.at ?? place);
      one.sendHome();
      waves.add(place, { stage: stage.name, ended: one.ended, toFree: one.toFree(place) });
    };
  }

  /**
   * Returns a function that is true for blocks to skip: empty blocks and, in an expansion that only computes
   * memory, blocks outside the sample.
   */
  #sampling({ grid, order }: Extract<Work, { readonly kind: 'blocks' }>): (block: GridBlock) => boolean {
    const { visitsARow } = this.#bound;
    const sizes = this.#bound.blockSizes?.[grid.of];
    const visits = new Int32Array(grid.rows);
    // Columns that are sent from place to place are never skipped, because each place needs the columns that
    // the previous place updated. For the order `rows`, see sampleOf.
    const isSampled = ({ row }: GridBlock) =>
      visitsARow === undefined || order === 'turns' || order === 'rows' || visits[row] < visitsARow;
    return (block) => {
      if (sizes?.[block.row][block.column] === 0 || !isSampled(block)) return true;
      visits[block.row]++;
      return false;
    };
  }

  /** The values that tasks can take from a block as parameters. */
  #fieldsOf({ row, column }: GridBlock): Visit['fields'] {
    const { bands, blockFields } = this.#bound;
    const [rows, columns] = [bands?.rows[row], bands?.columns[column]];
    return {
      ...this.#round.params,
      ...blockFields?.[row][column],
      row,
      column,
      rowFrom: rows?.from,
      rowCount: rows && rows.to - rows.from,
      columnFrom: columns?.from,
    };
  }
}
