import type { DeviceInfo } from '../../engine/executor.ts';
import { blockBytes, factorBytes } from '../planner/sizes.ts';
import type { SgdParams } from './params.ts';
import type { ScheduleProblem, SgdSchedule } from './schedule.ts';

/** How the ratings are laid out for the epochs, and what steps them. */
export interface SgdLayout {
  readonly name: string;
  readonly kernel: string;
  readonly where: 'host' | 'device' | 'grid';
  readonly tasks?: number;
  readonly bytes: number;
  /** Of the largest buffer on a GPU. */
  readonly bufferBytes: number;
  readonly step: string;
}

export function layoutOf({ kind, rowBands, columnBands, precision, deviceBlocks }: SgdSchedule, nz: number, rows: number): SgdLayout {
  const step = `sgd-block ${kind}`;
  const cut = { name: 'cut-blocks', kernel: 'cut-block', where: 'grid', tasks: rowBands, bytes: 8 * nz + 4 * rows * columnBands } as const;
  if (deviceBlocks?.steps === 'tile') return { ...cut, bufferBytes: (8 * nz) / (rowBands * columnBands), step: 'sgd-tiles' };
  if (deviceBlocks) return { ...cut, kernel: 'cut-block, shuffle-ratings', bytes: cut.bytes + 12 * nz, bufferBytes: (4 * nz) / (rowBands * columnBands), step };
  if (kind === 'tile') return { name: 'deal-ratings', kernel: 'sgd-tile-count, sgd-tile-scatter', where: 'device', bytes: 8 * nz, bufferBytes: 8 * nz, step: 'sgd-tiles' };
  if (kind === 'hogwild') return { name: 'shuffle-ratings', kernel: 'deal-ratings, shuffle-ratings', where: 'host', bytes: 12 * nz, bufferBytes: 4 * nz, step };
  if (precision !== undefined) return { name: 'sort-waves', kernel: 'sgd-wave-count, sgd-wave-scatter', where: 'device', bytes: 12 * nz, bufferBytes: 12 * nz, step: 'sgd-waves' };
  return { ...cut, bufferBytes: 0, step };
}

/** Both sides' factors, with AdaGrad a sum for each row of either. */
export function versionBytesOf({ users, items }: ScheduleProblem, { rank, biases, rate }: SgdParams, { kind, strideStep: step = 8 }: DeviceInfo): number {
  const features = rank + (biases ? 2 : 0);
  const sums = rate === 'adagrad' ? (users + items) * 4 * (kind === 'gpu' ? step : 1) : 0;
  return factorBytes(users, features, step) + factorBytes(items, features, step) + sums;
}

/** On a GPU the ratings lie there too, once as they come and once as they are stepped, and float16 mirrors beside the factors. */
export function sgdDeviceBytes(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo, schedule: SgdSchedule): number {
  if (schedule.deviceBlocks) return schedule.deviceBlocks.deviceBytes;
  const { users, items, ratings = 0, testRatings } = problem;
  const versions = versionBytesOf(problem, params, device) * (params.earlyStop === undefined ? 2 : 3);
  if (device.kind === 'cpu') return versions;
  const rows = Math.max(users, items);
  const layout = layoutOf(schedule, ratings, rows).bytes;
  return versions * (schedule.precision === 'f16' ? 1.5 : 1) + blockBytes(rows, ratings) + layout + (testRatings === undefined ? 0 : blockBytes(rows, testRatings));
}

/** The largest buffers on a GPU, by what they hold. */
export function sgdBuffers({ users, items, ratings = 0 }: ScheduleProblem, { rank, biases }: SgdParams, { strideStep }: DeviceInfo, schedule: SgdSchedule): Readonly<Record<string, number>> {
  const rows = Math.ceil(Math.max(users, items) / (schedule.deviceBlocks ? schedule.rowBands : 1));
  const features = rank + (biases ? 2 : 0);
  const { bufferBytes } = layoutOf(schedule, ratings, Math.max(users, items));
  const parts = schedule.deviceBlocks ? schedule.rowBands * schedule.columnBands : 1;
  return {
    [`the factors of ${rows.toLocaleString('en')} rows`]: factorBytes(rows, features, strideStep),
    [`${Math.ceil(ratings / parts).toLocaleString('en')} ratings`]: bufferBytes,
  };
}
