import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataUses, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { reduceWay } from './cost/groups.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { implicitUses } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { otherSide, type Side, verticalParts } from './grid.ts';
import { pipelineName, regularizationOf } from './half-iteration.ts';
import { type AlsProblem, blockPlaces, overRatings, partPlaces, sideNames, tasksOfPart } from './problem.ts';

/** Places that hold parts of the fixed side while a side is solved. */
export function placesOfFixedParts(problem: AlsProblem, side: Side): Place[] {
  return [...new Set(partPlaces(problem, otherSide[side]))];
}

/**
 * Builds the stages that solve the rows of a side from vertical parts of the fixed side: cuMF's data
 * parallelism (section 4.3, Algorithm 3).
 */
export class PartedSide {
  readonly solved: ReturnType<typeof sideNames>;
  /** True if each device has a part of the sums. */
  readonly several: boolean;
  /** Number of devices that have a part of the sums. */
  readonly sharing: number;
  /** The data set with each device's equations. */
  readonly collected: string;
  readonly partitions: { readonly p: number; readonly q: number };
  /** Use of the fixed side by tasks: the part of the block's column. */
  readonly fixed: DataUses;
  /** Use of the data of implicit ALS by tasks. */
  readonly implicit: DataUses;
  readonly #problem: AlsProblem;
  readonly #side: Side;

  constructor(problem: AlsProblem, side: Side) {
    [this.#problem, this.#side] = [problem, side];
    const { factors, bias } = sideNames(otherSide[side], problem);
    this.solved = sideNames(side, problem);
    this.several = problem.places.length > 1;
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

  /** Stage that frees each device's equations. */
  free(name: string): Stage {
    return { name, at: this.#problem.places, work: { kind: 'free', data: [this.collected] } };
  }

  /** Stage for a pass over the blocks of ratings. */
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

  /** Stage for a pass over the equations that each device has of each part of the rows. */
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

  /** Stage for a pass over the rows. */
  overRows(name: string, task: TaskPlan, more: Partial<Stage> = {}): Stage {
    const { params, device } = this.#problem;
    const weights = params.implicitPrefs ? { lambda: params.regParam } : regularizationOf(params, this.#side);
    const tasks = [{ ...task, params: { rank: params.rank, ...weights, ...task.params } }];
    return {
      name,
      at: partPlaces(this.#problem, this.#side),
      work: { kind: 'tasks', tasks },
      kernel: task.kernel,
      tasks: device.wholePasses ? 1 : tasksOfPart(this.#problem, this.#side),
      ...more,
    };
  }

  /** Stage that sends vectors of the rows to all devices. */
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
   * Stage of the exchange that adds partial sums of `bytes` from all devices, at the places of the
   * rows. Two phases if that takes less time or was requested.
   */
  reduce(name: string, data: string, to: string, bytes: number): Stage[] {
    if (!this.several) return [];
    const { groups, seconds, onePhase } = reduceWay(this.#problem, bytes);
    const moved = `${formatBytes((this.sharing - 1) * bytes)} down and up`;
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
      exchange: groups ? `reduce-scatter in two phases: ${moved}` : `reduce-scatter: ${moved}`,
    };
    if (groups === undefined) return [stage];
    const reason =
      `partial sums are added inside ${groups.map((group) => group.join(' ')).join(' and ')} before ` +
      `they are sent between the groups: about ${formatMilliseconds(1000 * seconds)}, and ` +
      `${formatMilliseconds(1000 * onePhase)} in one phase`;
    return [{ ...stage, reasons: [reason] }];
  }

  /** Puts the stages into a pipeline: a part's sums exist until its rows are solved. */
  pipeline(stages: readonly Stage[]): Stage[] {
    return stages.map((stage) => ({ ...stage, pipeline: pipelineName(this.#side) }));
  }
}
