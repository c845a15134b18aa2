import type { SgdSchedule } from './schedules/schedule.ts';

/** The layout into which ratings are brought before the steps, and its memory. */
export interface SgdLayout {
  /** Name of the stage that makes the layout, before the steps or in the first epoch. */
  readonly name: string;
  readonly kernel: string;
  readonly where: 'host' | 'device';
  readonly tasks?: number;
  readonly bytes: number;
  /** Bytes of the largest buffer on a GPU. */
  readonly bufferBytes: number;
  readonly step: string;
}

/** The layout in which a schedule steps `nz` ratings of `rows` rows. */
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
  // With one band of columns, a block consists of whole rows of the sorted ratings, so it is a view and not a
  // copy.
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
