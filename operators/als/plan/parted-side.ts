import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataUses, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { reduceWay } from './cost/groups.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { implicitUses } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { otherSide, type Side, verticalParts, stepsEverywhere } from './grid.ts';
import { pipelineName, regularizationOf } from './half-iteration.ts';
import { type AlsProblem, blockPlaces, overRatings, partPlaces, sideNames, tasksOfPart } from './problem.ts';

/** Devices that hold parts of the other factor matrix, which is fixed while `side` is solved. */
export function placesOfFixedParts(problem: AlsProblem, side: Side): Place[] {
  return [...new Set(partPlaces(problem, otherSide[side]))];
}

/**
 * Builds the plan stages that solve one factor matrix (users or items) when the other one, which is fixed, is
 * cut into parts (vertical parts, in cuMF's terms). Each part gives partial sums for the solved rows, and the
 * sums of all parts are added: cuMF's data parallelism (section 4.3, Algorithm 3).
 */
export class PartedSide {
  readonly solved: ReturnType<typeof sideNames>;
  /** True if there are several devices, so that each has only partial sums. */
  readonly several: boolean;
  /** Number of devices that hold parts of the fixed side and compute partial sums. */
  readonly sharing: number;
  /** True if every device takes the CG steps of all rows. */
  readonly everywhere: boolean;
  /** Data set to which tasks add normal equations; with several devices, each has partial ones. */
  readonly collected: string;
  readonly partitions: { readonly p: number; readonly q: number };
  /** The fixed side as task inputs: each task reads the part that belongs to its block of ratings. */
  readonly fixed: DataUses;
  /** Task inputs for implicit data (Gram matrix and shifts); empty for explicit data. */
  readonly implicit: DataUses;
  readonly #problem: AlsProblem;
  readonly #side: Side;

  constructor(problem: AlsProblem, side: Side) {
    [this.#problem, this.#side] = [problem, side];
    const { factors, bias } = sideNames(otherSide[side], problem);
    this.solved = sideNames(side, problem);
    this.several = problem.places.length > 1;
    this.everywhere = stepsEverywhere(problem.grid, side);
    this.collected = this.several ? this.solved.partials : this.solved.equations;
    this.sharing = placesOfFixedParts(problem, side).length;
    this.partitions = { p: verticalParts(problem.grid, side), q: problem.grid[side].q };
    this.fixed = {
      fixed: { set: factors, part: 'column' },
      ...(bias ? { fixedBias: { set: bias, part: 'column' } } : {}),
    };
    this.implicit = problem.params.implicitPrefs ? implicitUses(side, otherSide[side]) : {};
  }

  /** Bytes of a matrix with one row for each row of the side. */
  bytes(columns: number, side = this.#side): number {
    return factorBytes(this.#problem.rows[side], columns, this.#problem.device.strideStep);
  }

  zeros(name: string, data: string): Stage {
    return { name, at: this.#problem.places, work: { kind: 'allocate', data: [data] } };
  }

  /** Stage that frees the data set `collected`. */
  free(name: string): Stage {
    return { name, at: this.#problem.places, work: { kind: 'free', data: [this.collected] } };
  }

  /**
   * Stage that runs a task on each block of ratings. A block has the ratings between one part of each side.
   */
  overBlocks(name: string, { kernel, uses, params }: TaskPlan, more: Partial<Stage>): Stage {
    const { params: given, profile, rows } = this.#problem;
    const block = this.solved.ratings;
    const weights = given.implicitPrefs ? { implicit: implicitWeights(given) } : {};
    const task = { kernel, uses: { block, ...uses }, params: { rank: given.rank, ...weights, ...params } };
    return {
      name,
      at: blockPlaces(this.#problem, this.#side),
      work: overRatings(this.#problem, this.#side, block, [task]),
      kernel,
      tasks: tasksOfPart(this.#problem, this.#side),
      partitions: this.partitions,
      bytesRead:
        blockBytes(rows[this.#side], profile.ratings) +
        this.partitions.q * this.bytes(given.rank, otherSide[this.#side]),
      ...more,
    };
  }

  /**
   * Stage in which each device runs a task on its partial equations, once for each part of the solved rows.
   */
  overEquations(name: string, { kernel, uses }: TaskPlan, more: Partial<Stage>): Stage {
    const { params, rows } = this.#problem;
    const places = placesOfFixedParts(this.#problem, this.#side);
    const { q } = this.partitions;
    const task = { kernel, uses: { equations: this.collected, ...uses }, params: { rank: params.rank } };
    return {
      name,
      at: Array.from({ length: q }, () => places).flat(),
      work: { kind: 'tasks', tasks: [task] },
      kernel,
      tasks: q,
      bytesRead: this.sharing * this.bytes(equationColumns(params.rank, params.biases)),
      flops: 2 * this.sharing * rows[this.#side] * params.rank ** 2,
      ...more,
    };
  }

  /** Stage that runs a task on each part of the solved rows, on each device that takes the part's steps. */
  overRows(name: string, task: TaskPlan, more: Partial<Stage> = {}): Stage {
    const { params, device } = this.#problem;
    const weights = params.implicitPrefs ? { lambda: params.regParam } : regularizationOf(params, this.#side);
    const tasks = [{ ...task, params: { rank: params.rank, ...weights, ...task.params } }];
    return {
      name,
      at: this.everywhere ? this.#problem.places : partPlaces(this.#problem, this.#side),
      work: { kind: 'tasks', tasks },
      kernel: task.kernel,
      tasks: device.wholePasses ? 1 : tasksOfPart(this.#problem, this.#side),
      ...more,
    };
  }

  /** Stage that sends one vector per row from the row's owner to all devices; none for a single device. */
  spread(name: string, data: string): Stage[] {
    if (!this.several) return [];
    const bytes = this.bytes(this.#problem.params.rank);
    const stage: Stage = {
      name,
      at: partPlaces(this.#problem, this.#side),
      work: { kind: 'exchange', how: 'spread', data: [data], to: [this.solved.allDirections] },
      exchange: `spread: ${formatBytes(bytes)} down, ${formatBytes((this.sharing - 1) * bytes)} up`,
    };
    return [stage];
  }

  /**
   * Stage that adds the partial sums of all devices (`bytes` on each device) and leaves each part's sum on
   * the device that owns the part. The reduction has two phases if that takes less time or was requested (see
   * reduceWay). Returns no stage for a single device.
   */
  reduce(name: string, data: string, to: string, bytes: number): Stage[] {
    if (!this.several) return [];
    const { groups, seconds, onePhase } = reduceWay(this.#problem, bytes);
    const owners = this.everywhere ? this.sharing : 1;
    const moved = `${formatBytes(owners * (this.sharing - 1) * bytes)} down and up`;
    const called = this.everywhere ? 'reduce to all' : 'reduce-scatter';
    const stage: Stage = {
      name,
      at: partPlaces(this.#problem, this.#side),
      work: {
        kind: 'exchange',
        how: 'reduce-scatter',
        data: [data],
        to: [to],
        ...(groups ? { groups } : {}),
      },
      exchange: groups ? `${called} in two phases: ${moved}` : `${called}: ${moved}`,
    };
    if (groups === undefined) return [stage];
    const reason =
      `partial sums are added inside ${groups.map((group) => group.join(' ')).join(' and ')} before ` +
      `they are sent between the groups: about ${formatMilliseconds(1000 * seconds)}, and ` +
      `${formatMilliseconds(1000 * onePhase)} in one phase`;
    return [{ ...stage, reasons: [reason] }];
  }

  /**
   * Puts the stages into one pipeline: a part of the rows goes through all of them before later parts do, so
   * the sums of a part are in memory only until its rows are solved.
   */
  pipeline(stages: readonly Stage[]): Stage[] {
    return stages.map((stage) => ({ ...stage, pipeline: pipelineName(this.#side) }));
  }
}
