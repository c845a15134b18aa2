import type { SgdSchedule } from './schedules/schedule.ts';

/** Layout of the ratings for the steps of an epoch. */
export interface SgdLayout {
  /** Stage that makes the layout, before the steps or with the first epoch. */
  readonly name: string;
  readonly kernel: string;
  readonly where: 'host' | 'device';
  readonly tasks?: number;
  readonly bytes: number;
  /** Bytes of the largest buffer on a GPU. */
  readonly bufferBytes: number;
  readonly step: string;
}

/** Layout of a schedule's `nz` ratings in `rows` rows. */
export function layoutOf(
  { kind, rowBands, columnBands, precision, deviceBlocks }: SgdSchedule,
  nz: number,
  rows: number,
): SgdLayout {
  const step = `sgd-block ${kind}`;
  const cut = {
    name: 'cut-blocks',
    kernel: 'place-columns',
    where: 'host',
    tasks: rowBands,
    bytes: 8 * nz + 4 * rows * columnBands,
  } as const;
  // If there is one band of columns, a block consists of whole rows of the ratings, in their existing order:
  // it is no copy.
  const blocks = columnBands === 1 ? ({ ...cut, where: 'device' } as const) : cut;
  if (deviceBlocks?.steps === 'tile')
    return { ...blocks, bufferBytes: (8 * nz) / (rowBands * columnBands), step: 'sgd-tiles' };
  if (deviceBlocks)
    return {
      ...cut,
      kernel: 'place-columns, shuffle-ratings',
      bytes: cut.bytes + 12 * nz,
      bufferBytes: (4 * nz) / (rowBands * columnBands),
      step,
    };
  if (kind === 'tile')
    return {
      name: 'deal-ratings',
      kernel: 'sgd-tile-count, sgd-tile-scatter',
      where: 'device',
      bytes: 8 * nz,
      bufferBytes: 8 * nz,
      step: 'sgd-tiles',
    };
  if (kind === 'hogwild')
    return {
      name: 'shuffle-ratings',
      kernel: 'deal-ratings, shuffle-ratings',
      where: 'host',
      bytes: 12 * nz,
      bufferBytes: 4 * nz,
      step,
    };
  if (precision !== undefined)
    return {
      name: 'sort-waves',
      kernel: 'sgd-wave-count, sgd-wave-scatter',
      where: 'device',
      bytes: 12 * nz,
      bufferBytes: 12 * nz,
      step: 'sgd-waves',
    };
  return { ...cut, bufferBytes: 0, step };
}
