import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { readRows, type RowParts } from '../../engine/row-parts.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import { type BoundPlan, partRef } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { DataPart, DataSet, RowRange, Stage, TaskPlan } from '../../engine/plan/stages.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { HOST } from '../../engine/plan/place.ts';
import { fits } from '../planner/sizes.ts';
import { balancedRanges, evenRanges, taskCount } from '../ratings/row-ranges.ts';
import { isInParts, type SortedRatings } from '../ratings/spilled-ratings.ts';
import { contracts } from '../tasks/tasks.ts';
import { measureStages } from '../training/loss.ts';
import { steppedBytes } from './bytes.ts';
import { rowPartsOf } from './data-sets.ts';
import type { HostPart } from './data/cut-blocks.ts';
import type { SgdData } from './data/data.ts';
import { hogwildTeams } from './schedules/gpu-schedule.ts';
import type { SgdLayoutData } from './data/layout.ts';
import type { TrainedFactors } from './factors.ts';
import { type SgdParams, steppedLambdas } from './params.ts';
import { scheduleOf, sgdFeatures } from './plan.ts';
import { BATCH_RATINGS } from './schedules/schedule.ts';
import { TASKS_PER_WORKER } from './stages.ts';
import { startParams } from './start.ts';
import { teamOf, tileShape } from './schedules/tiles.ts';

export interface BoundSgd {
  readonly plan: PhysicalPlan;
  readonly bound: BoundPlan;
  readonly given: readonly (readonly [PartitionRef, Partition])[];
}

/**
 * Binds a plan to ratings that are laid out as its schedule wants them. Blocks that turn out not to fit their
 * devices are staged. `epoch`: the first that the given start is stepped in.
 *
 */
export function bindSgd(
  planned: PhysicalPlan,
  params: SgdParams,
  data: SgdData,
  laid: SgdLayoutData,
  start?: TrainedFactors,
  epoch = 1,
): BoundSgd {
  const binding = new Binding(planned, params, data, laid, start, epoch);
  const made = binding.make(true);
  return fits(made.plan) ? made : binding.make(false);
}

class Binding {
  readonly #planned: PhysicalPlan;
  readonly #params: SgdParams;
  readonly #data: SgdData;
  readonly #laid: SgdLayoutData;
  readonly #start: TrainedFactors | undefined;
  readonly #epoch: number;
  readonly #compute: readonly DeviceInfo[];
  readonly #host: DeviceInfo;

  constructor(
    planned: PhysicalPlan,
    params: SgdParams,
    data: SgdData,
    laid: SgdLayoutData,
    start: TrainedFactors | undefined,
    epoch: number,
  ) {
    this.#planned = planned;
    this.#params = params;
    this.#data = data;
    this.#laid = laid;
    this.#start = start;
    this.#epoch = epoch;
    const places = planned.round.find(({ name }) => name === 'sgd-epoch')?.at ?? [];
    const deviceOf = (place: string) => planned.devices.find((one) => one.place === place) as DeviceInfo;
    this.#compute = places.map(deviceOf);
    this.#host = deviceOf(planned.start.find(({ name }) => name === 'initialize-rows')?.at[0] ?? places[0]);
  }

  make(mayStay: boolean): BoundSgd {
    const { bands } = this.#laid;
    const { deviceBlocks } = scheduleOf(this.#planned);
    const name = dataSetName('sgd');
    const counts = { rows: this.#data.ratings.rows, columns: this.#data.columnOffsets.length - 1 };
    const parted = deviceBlocks !== undefined;
    const rowRanges =
      rowPartsOf(scheduleOf(this.#planned)) > 1 || parted ? bands.rows : [{ from: 0, to: counts.rows }];
    const columnRanges = parted ? bands.columns : [{ from: 0, to: counts.columns }];
    const width = parted ? Math.max(...columnRanges.map(({ from, to }) => to - from)) : counts.columns;
    const given: [PartitionRef, Partition][] = [];
    const refs: Record<string, PartitionRef[]> = {};
    const datasets = this.#planned.datasets.map((set): DataSet => {
      const parts = this.#partsOf(set, { name, rowRanges, columnRanges, width, mayStay, given, refs });
      return { ...set, parts };
    });
    const sizes = (parts: readonly (readonly HostPart[])[] | undefined) =>
      parts?.map((row) => row.map(({ ratings }) => ratings));
    const blockSizes = Object.fromEntries(
      [
        ['blocks', sizes(this.#laid.blocks)],
        ['tests', sizes(this.#laid.tests)],
      ].flatMap(([set, size]) => (size === undefined ? [] : [[set, size]])) as [string, number[][]][],
    );
    const features = sgdFeatures(this.#params);
    const blockFields = parted
      ? this.#laid.blocks?.map((row, r) =>
          row.map(({ ratings }): JsonObject => ({
            width,
            batches: Math.ceil(ratings / BATCH_RATINGS),
            teams: hogwildTeams(width, ratings),
            lanes: teamOf(features, this.#compute[r].limits),
          })),
        )
      : undefined;
    const slices = this.#slices(rowRanges, columnRanges, width);
    const resident = mayStay && (deviceBlocks?.resident ?? true);
    const bind = (list: readonly Stage[]) =>
      list.map((stage) => this.#stage(stage, { slices, width, parted }));
    const startStages = bind(this.#planned.start).filter(
      ({ name: stage }) => resident || stage !== 'place-ratings',
    );
    const unfitted: PhysicalPlan = {
      ...this.#planned,
      datasets,
      start: startStages,
      round: bind(this.#planned.round),
      measure: bind(this.#planned.measure),
    };
    const phases = {
      start:
        this.#start === undefined
          ? unfitted.start
          : startFrom(unfitted, this.#start.rowSums !== undefined, this.#epoch),
      round: unfitted.round,
      measure: unfitted.measure,
      end: unfitted.end,
    };
    const bound: BoundPlan = {
      name,
      devices: this.#planned.devices,
      datasets,
      phases,
      given: refs,
      slices,
      bands,
      blockSizes,
      ...(blockFields ? { blockFields } : {}),
      ...(this.#planned.measureBytes ? { measureBytes: this.#planned.measureBytes } : {}),
    };
    const peak = peakOf(bound, contracts, this.#planned.keep);
    const plan: PhysicalPlan = {
      ...unfitted,
      memory: { ...peak, [HOST]: Math.max(this.#planned.memory[HOST] ?? 0, peak[HOST] ?? 0) },
    };
    return { plan, bound, given: [...given, ...this.#givenFactors(bound, rowRanges, columnRanges, width)] };
  }

  /** The parts of a data set with their real sizes; partitions that are there go into `given`. */
  #partsOf(
    set: DataSet,
    { name, rowRanges, columnRanges, width, mayStay, given, refs }: PartsContext,
  ): DataPart[] {
    const { blocks, lists, tests, ratings: whole } = this.#laid;
    const give = (parts: readonly { readonly ref: PartitionRef; readonly partition: Partition }[]) => {
      refs[set.name] = parts.map(({ ref }) => ref);
      for (const { ref, partition } of parts) given.push([ref, partition]);
    };
    const own = (partition: number): PartitionRef => ({ name: `${name}/${set.name}`, partition, version: 0 });
    const lengths = set.by === 'column' || set.name.startsWith('column') ? columnRanges : rowRanges;
    const rowsOf = (part: number) =>
      lengths === columnRanges ? width : rowRanges[part].to - rowRanges[part].from;
    const { steps } = scheduleOf(this.#planned).deviceBlocks ?? {};
    const staged = (at: readonly string[]) =>
      mayStay || scheduleOf(this.#planned).deviceBlocks === undefined ? at : at.slice(0, 1);
    switch (set.name) {
      case 'rows':
      case 'columns':
      case 'row-sums':
      case 'column-sums':
      case 'passed-columns':
      case 'passed-column-sums':
        return lengths.map((_, part) => ({ rows: rowsOf(part), at: set.parts[part].at }));
      case 'row-keys':
      case 'column-keys': {
        // A start that is given needs none.
        const { low, high } =
          this.#start === undefined
            ? keyHashes(this.#data[set.name === 'row-keys' ? 'rows' : 'columns'].ids)
            : { low: new Uint32Array(0), high: new Uint32Array(0) };
        give(
          lengths.map(({ from, to }, part) => ({
            ref: own(part),
            partition: {
              layout: 'key-hashes',
              rows: to - from,
              columns: { low: low.subarray(from, to), high: high.subarray(from, to) },
            },
          })),
        );
        return lengths.map(({ from, to }, part) => ({
          rows: to - from,
          bytes: 8 * (to - from),
          at: set.parts[part].at,
        }));
      }
      case 'row-counts':
      case 'column-counts': {
        const offsets = (part: number): RowOffsets =>
          set.name === 'row-counts'
            ? offsetsOfRows(this.#data.ratings, lengths[part])
            : this.#data.columnOffsets.subarray(lengths[part].from, lengths[part].to + 1);
        give(
          lengths.map((_, part) => ({ ref: own(part), partition: countsBlock(offsets(part), rowsOf(part)) })),
        );
        return lengths.map((_, part) => ({
          rows: rowsOf(part),
          bytes: 4 * (rowsOf(part) + 1),
          at: set.parts[part].at,
        }));
      }
      case 'ratings':
        give(whole);
        return whole.map(({ partition, ratings }) => ({
          ...set.parts[0],
          rows: partition.rows,
          ...steppedBytes(partition.rows, ratings, undefined),
        }));
      case 'list':
        give((lists ?? []).flat());
        return [{ ...set.parts[0], bytes: 12 * this.#data.ratings.ratings }];
      case 'order':
      case 'wave-order':
        return [...set.parts];
      case 'orders':
        return (blocks ?? []).flat().map(({ ratings }) => ({
          rows: 0,
          bytes: 4 * Math.ceil(ratings / BATCH_RATINGS),
          at: set.parts[0].at,
        }));
      default: {
        const parts = { blocks, lists, tests }[set.name];
        if (parts === undefined) throw new Error(`the plan's data set ${set.name} is not known to SGD`);
        give(parts.flat());
        const columns = set.parts.length / Math.max(1, new Set(set.parts.map(({ at }) => at.at(-1))).size);
        return parts.flatMap((row, r) =>
          row.map(({ partition, ratings }): DataPart => {
            const at = staged(set.parts[Math.min(set.parts.length - 1, r * columns)].at);
            return {
              rows: partition.rows,
              at,
              ...(set.name === 'lists'
                ? { bytes: 12 * ratings }
                : steppedBytes(partition.rows, ratings, set.name === 'blocks' ? steps : undefined)),
            };
          }),
        );
      }
    }
  }

  #slices(
    rowRanges: readonly RowRange[],
    columnRanges: readonly RowRange[],
    width: number,
  ): Record<string, RowRange[][]> {
    const { ratings, columnOffsets } = this.#data;
    const [device] = this.#compute;
    const { deviceBlocks, workers } = scheduleOf(this.#planned);
    const whole = (offsets: RowOffsets) =>
      device.wholePasses
        ? balancedRanges(offsets, 1)
        : balancedRanges(offsets, taskCount(offsets[offsets.length - 1]));
    const spread = (ranges: readonly RowRange[], parts: number) =>
      ranges.map(({ from, to }) => evenRanges(to - from, parts));
    const batches = Math.ceil(ratings.ratings / BATCH_RATINGS);
    const [rowStage, columnStage] = [
      measureStages[this.#data.rows.name],
      measureStages[this.#data.columns.name],
    ];
    const ofRows = this.#laid.ratings.map(({ partition }) => whole(partition.columns.offsets as Int32Array));
    const ofTests = this.#laid.tests?.map(([{ partition }]) =>
      whole(partition.columns.offsets as Int32Array),
    );
    return {
      'initialize-rows': spread(rowRanges, 4 * this.#host.parallelism),
      'initialize-columns': spread(columnRanges, 4 * this.#host.parallelism),
      ...Object.fromEntries(
        ['rows', 'row-sums'].map((name) => [`copy-${name}`, spread(rowRanges, device.parallelism)]),
      ),
      ...Object.fromEntries(
        ['columns', 'column-sums'].map((name) => [
          `copy-${name}`,
          columnRanges.map(() => evenRanges(width, device.parallelism)),
        ]),
      ),
      'shrink-rows': spread(rowRanges, device.wholePasses ? 1 : device.parallelism),
      ...(deviceBlocks
        ? {}
        : {
            'shrink-columns': [evenRanges(width, device.wholePasses ? 1 : device.parallelism)],
            ...(scheduleOf(this.#planned).kind === 'hogwild'
              ? { 'sgd-epoch': [evenRanges(batches, device.wholePasses ? 1 : TASKS_PER_WORKER * workers)] }
              : {}),
            [measureStages.train]: ofRows,
            [rowStage]: ofRows,
            [columnStage]: [whole(columnOffsets)],
            ...(ofTests === undefined ? {} : { [measureStages.test]: ofTests }),
          }),
    };
  }

  /** The stage with the parameters that the data decide. */
  #stage(
    stage: Stage,
    {
      slices,
      width,
      parted,
    }: {
      readonly slices: Readonly<Record<string, RowRange[][]>>;
      readonly width: number;
      readonly parted: boolean;
    },
  ): Stage {
    const { bands } = this.#laid;
    const counted =
      slices[stage.name] === undefined
        ? {}
        : { tasks: Math.max(...slices[stage.name].map((ranges) => ranges.length)) };
    const { work } = stage;
    if (work.kind !== 'tasks' && work.kind !== 'blocks') return stage;
    const tasks = work.tasks.map((task) => ({
      ...task,
      params: { ...task.params, ...this.#paramsOf(stage.name, task) },
      ...this.#shapes(task, width, parted),
    }));
    if (work.kind === 'tasks') return { ...stage, ...counted, work: { kind: 'tasks', tasks } };
    const grid = { ...work.grid, rows: bands.rows.length, columns: bands.columns.length };
    const { blocks, tests } = this.#laid;
    const visited = (grid.of === 'tests' ? tests : blocks)
      ?.flat()
      .filter(({ ratings }) => ratings > 0).length;
    return {
      ...stage,
      tasks: visited,
      partitions: { p: grid.columns, q: grid.rows },
      work: { ...work, grid, tasks },
    };
  }

  #paramsOf(stage: string, { kernel }: TaskPlan): JsonObject {
    const { scale, rows, columns } = this.#data;
    const { bands } = this.#laid;
    const starts = (ranges: readonly RowRange[]) => [0, ...ranges.map(({ to }) => to)];
    const lambdas = steppedLambdas(this.#params, scale.deviation);
    const step = { rowLambda: lambdas[rows.name], columnLambda: lambdas[columns.name] };
    switch (kernel) {
      case 'initialize':
        return startParams(this.#params, this.#data, stage === 'initialize-rows');
      case 'sgd-block':
        return step;
      case 'sgd-tiles':
        return { ...step, level: (scale.mean - scale.center) / scale.deviation };
      case 'sgd-waves':
        return { ...step, rowStarts: starts(bands.rows), columnStarts: starts(bands.columns) };
      case 'wave-order':
        return { workers: bands.rows.length, columnBands: bands.columns.length };
      default:
        return {};
    }
  }

  /** Of tiles by blocks: the shape that suits each device, for the widest segment. */
  #shapes({ kernel }: TaskPlan, width: number, parted: boolean): Pick<TaskPlan, 'perPart'> {
    if (kernel !== 'sgd-tiles' || !parted) return {};
    const { rows, columns } = this.#laid.bands;
    const ratings = Math.ceil(this.#data.ratings.ratings / (rows.length * columns.length));
    return {
      perPart: rows.map((_, r) => {
        const shape = tileShape({ columns: width, ratings }, this.#params, this.#compute[r]);
        if (shape === undefined)
          throw new Error(`the tiles of a segment of ${width} columns do not fit ${this.#compute[r].place}`);
        const { tiles, lanes, threads, precision, arithmetic } = shape;
        return { tiles, lanes, threads, precision, arithmetic };
      }),
    };
  }

  #givenFactors(
    bound: BoundPlan,
    rowRanges: readonly RowRange[],
    columnRanges: readonly RowRange[],
    width: number,
  ): [PartitionRef, Partition][] {
    const start = this.#start;
    if (start === undefined) return [];
    const part = (
      name: string,
      partition: number,
      rows: number,
      values: Float32Array,
    ): [PartitionRef, Partition] => {
      const set = bound.datasets.find((one) => one.name === name) as DataSet;
      return [
        partRef(bound, set, partition, 0),
        { layout: 'factors', rows, columns: { values }, ...(set.packed ? { packed: true } : {}) },
      ];
    };
    const rowParts = (name: string, rows: RowParts) =>
      rowRanges.map(({ from, to }, r) => part(name, r, to - from, readRows(rows, from, to, true)));
    const columnParts = (name: string, columns: RowParts) =>
      columnRanges.map(({ from, to }, c) => {
        const values = readRows(columns, from, to, true);
        if (to - from === width) return part(name, c, width, values);
        const wide = sharedArray(Float32Array, width * columns.columns);
        wide.set(values);
        return part(name, c, width, wide);
      });
    return [
      ...rowParts('rows', start.rows),
      ...columnParts('columns', start.columns),
      ...(start.rowSums && start.columnSums
        ? [...rowParts('row-sums', start.rowSums), ...columnParts('column-sums', start.columnSums)]
        : []),
    ];
  }
}

interface PartsContext {
  readonly name: string;
  readonly rowRanges: readonly RowRange[];
  readonly columnRanges: readonly RowRange[];
  readonly width: number;
  readonly mayStay: boolean;
  readonly given: [PartitionRef, Partition][];
  readonly refs: Record<string, PartitionRef[]>;
}

type RowOffsets = Int32Array | Float64Array;

/** The pointers of some rows, which are those of a part where ratings are in parts. */
function offsetsOfRows(ratings: SortedRatings, { from, to }: RowRange): RowOffsets {
  if (!isInParts(ratings)) return ratings.offsets.subarray(from, to + 1);
  const part = ratings.parts.find((one) => one.from === from);
  if (part === undefined) throw new Error(`no part of the ratings begins at row ${from}`);
  return part.offsets;
}

/** A block of no ratings whose row pointers count those of rows; rows beyond have none. */
function countsBlock(offsets: RowOffsets, rows: number): Partition {
  // Counts that add up beyond 2^32 begin at 0 again, so that their differences are right.
  const own = sharedArray(Int32Array, rows + 1);
  for (let row = 0; row <= rows; row++) own[row] = offsets[Math.min(row, offsets.length - 1)] - offsets[0];
  return {
    layout: 'rating-block',
    rows,
    columns: { offsets: own, indices: new Uint32Array(0), values: new Float32Array(0) },
  };
}

/** The start where factors are there: they come from the host in place of drawn ones. */
function startFrom({ start }: PhysicalPlan, withSums: boolean, epoch: number): Stage[] {
  const names = ['rows', 'columns', ...(withSums ? ['row-sums', 'column-sums'] : [])];
  return start.flatMap((stage): Stage[] => {
    if (stage.name === 'initialize-rows')
      return [
        {
          name: stage.name,
          at: stage.at,
          work: { kind: 'exchange', how: 'move', data: names, to: 'from-host' },
        },
      ];
    if (stage.name === 'first-batch-order' && stage.work.kind === 'tasks')
      return [
        {
          ...stage,
          work: {
            kind: 'tasks',
            tasks: stage.work.tasks.map((task) => ({ ...task, params: { ...task.params, epoch } })),
          },
        },
      ];
    return stage.name === 'initialize-columns' || (withSums && stage.work.kind === 'allocate') ? [] : [stage];
  });
}
