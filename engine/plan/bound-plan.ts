import type { JsonObject } from '../json.ts';
import type { DeviceInfo } from './device-info.ts';
import type { PartitionRef } from '../partition.ts';
import { HOST, type Place } from './place.ts';
import type { DataSet, PhaseName, RowRange, Slice, Stage } from './stages.ts';

/** A plan bound to its data, as plain data. `expand` makes steps from it. */
export interface BoundPlan {
  /** Prefix of the names of the data sets' versions; unique in the process. */
  readonly name: string;
  readonly devices: readonly DeviceInfo[];
  readonly datasets: readonly DataSet[];
  readonly phases: Readonly<Record<PhaseName, readonly Stage[]>>;
  /** The existing partitions before the first step, by data set and part. */
  readonly given: Readonly<Record<string, readonly PartitionRef[]>>;
  /** Slices of each part of a stage; default: one slice without parameters. */
  readonly slices: Readonly<Record<string, readonly (readonly Slice[])[]>>;
  /**
   * Bytes at each place that computing a metric of a round allocates while it runs. This computation is not
   * among the plan's steps.
   */
  readonly measureBytes?: Readonly<Record<Place, number>>;
  /** The bands of rows and of columns into which the grid is cut. */
  readonly bands?: { readonly rows: readonly RowRange[]; readonly columns: readonly RowRange[] };
  /** Entries of each block of a grid, by block data set, row and column. */
  readonly blockSizes?: Readonly<Record<string, readonly (readonly number[])[]>>;
  /**
   * Set for plans that are expanded only to compute memory: the largest number of blocks to visit in each row
   * of a grid. The steps then have no edges.
   */
  readonly visitsARow?: number;
  /**
   * Additional values of each block, by row and column of the grid. Tasks that run on the block may take
   * them as parameters (`takes`).
   */
  readonly blockFields?: readonly (readonly JsonObject[])[];
}

/** The newest version of each data set, before or after a round. */
export type Versions = Readonly<Record<string, number>>;

/**
 * The versions of data sets that a round must keep: the version from which it started, if the round may have
 * to be run again, and the best version so far.
 */
export interface KeptVersions {
  readonly start: boolean;
  readonly best: boolean;
  /**
   * True if the next round is sent before the errors of this round are known. The versions of this round are
   * kept until then.
   */
  readonly speculates?: boolean;
}

export function keptOf(keep: KeptVersions, start: Versions, best: Versions): Versions[] {
  const kept = [...(keep.start ? [start] : []), ...(keep.best ? [best] : [])];
  return kept.length === 2 && start === best ? [start] : kept;
}

export function dataSetOf({ datasets }: Pick<BoundPlan, 'datasets'>, name: string): DataSet {
  const found = datasets.find((one) => one.name === name);
  if (found === undefined) throw new Error(`the plan has no data set ${name}`);
  return found;
}

export function partRef(
  { name, given }: Pick<BoundPlan, 'name' | 'given'>,
  { name: data, given: isGiven }: DataSet,
  partition: number,
  version: number,
): PartitionRef {
  if (!isGiven) return { name: `${name}/${data}`, partition, version };
  const ref = given[data]?.[partition];
  if (ref === undefined) throw new Error(`part ${partition} of ${data} is not bound`);
  return ref;
}

/**
 * The stride of a matrix, in elements: the number of columns. For factors that are not packed, it is rounded
 * up to a multiple of `strideStep`, the number of elements that the device computes at once.
 */
export function strideOf(
  { columns = 1, layout, packed }: Pick<DataSet, 'columns' | 'layout' | 'packed'>,
  strideStep: number,
): number {
  return packed || layout !== 'factors' ? columns : Math.ceil(columns / strideStep) * strideStep;
}

export function partBytes(
  { devices }: Pick<BoundPlan, 'devices'>,
  set: DataSet,
  partition: number,
  place: Place,
): number {
  const { columns, parts, half } = set;
  const { rows, bytes = 0, deviceBytes = bytes } = parts[partition];
  const info = devices.find((one) => one.place === place);
  if (columns === undefined) return info?.ownMemory ? deviceBytes : bytes;
  if (place === HOST || info === undefined) return 4 * rows * columns;
  // A GPU pads a vector like any matrix.
  const stride = info.ownMemory
    ? Math.ceil(columns / info.strideStep) * info.strideStep
    : strideOf(set, info.strideStep);
  if (half === 'only' && info.ownMemory) return 2 * (rows + 1) * stride;
  return 4 * rows * stride * (half && info.ownMemory ? 1.5 : 1);
}
