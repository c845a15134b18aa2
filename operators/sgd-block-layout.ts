import { hostDevice } from '../engine/devices.ts';
import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { devicePlan } from './als-plan.ts';
import { requireDeviceFit } from './partition.ts';
import { blockOf, type RatingBlock } from './rating-block.ts';
import { cutAt } from './rating-grid.ts';
import { balancedRanges, type RowRange } from './row-ranges.ts';
import { RowBand, type RatingsPart } from './row-band.ts';
import { type BandSizes, bandBytes, bandTotal, lessByBlocks } from './sgd-blocks-bytes.ts';
import type { SgdParams } from './sgd-params.ts';
import { type TileShape, sgdPrecision, tileShape } from './sgd-tiles.ts';
import type { SgdInput } from './sgd.ts';
import { shuffleRatings } from './shuffled-ratings.ts';

/** A block of the grid in host memory. */
export interface LaidBlock {
  /** By row, for errors. */
  readonly sorted: RatingsPart;
  /** As an epoch visits it: the same, or its shuffled list. */
  readonly stepped: RatingsPart;
}

/** R as the schedule blocks lays it out for devices. */
export interface BlockLayout {
  /** One for each device that has rows. */
  readonly bands: readonly RowBand[];
  readonly segments: readonly RowRange[];
  /** Columns of the widest segment: matrices of all of them have as many, so that buffers and kernels serve each. */
  readonly width: number;
  /** By band and segment. */
  readonly blocks: readonly (readonly LaidBlock[])[];
  readonly tests: readonly (readonly RatingsPart[])[];
  /** Of each band's device; without any, blocks are stepped by Hogwild!. */
  readonly shapes?: readonly TileShape[];
}

/** Cuts the ratings for devices. Throws CapacityError when a band's factors and two of its blocks do not fit its device. */
export async function layOutBlocks({ data, schedule, test }: SgdInput, params: SgdParams, devices: readonly Device[], ctx: ExecutionContext): Promise<BlockLayout> {
  const host = hostDevice(ctx.executor);
  const { block, columnOffsets } = data;
  const cut = { rowBands: balancedRanges(block.offsets, Math.min(devices.length, schedule.rowBands), 0), columnBands: balancedRanges(columnOffsets, schedule.columnBands, 0) };
  const { rowBands: ranges, columnBands: segments } = cut;
  const width = Math.max(...segments.map(({ from, to }) => to - from));
  const parts = async (whole: RatingBlock): Promise<RatingsPart[][]> => {
    const refs = await cutAt(whole, cut, host, ctx, { local: true });
    return Promise.all(refs.map((row) => Promise.all(row.map(async (ref) => partOf(ref, host)))));
  };
  const sorted = await parts(block);
  const tests = test === undefined || test.ratings === 0 ? [] : await parts(test);
  const perBlock = Math.ceil(block.ratings / (ranges.length * segments.length));
  const shapes = ranges.map((_, d) => tileShape({ columns: width, ratings: perBlock }, params, devicePlan(devices[d])));
  const tiled = shapes.every((shape) => shape !== undefined);
  const bands = ranges.map((range, d) => {
    const sizes = sizesOf(range, { width, segments: segments.length }, sorted[d], tests[d]);
    return openBand(devices[d], range, sizes, params, tiled ? 'tile' : 'hogwild');
  });
  const blocks: LaidBlock[][] = [];
  for (const row of sorted) {
    const laid: LaidBlock[] = [];
    for (const part of row) laid.push({ sorted: part, stepped: tiled || part.ratings === 0 ? part : await shuffledPart(part, params.seed, host, ctx) });
    blocks.push(laid);
  }
  return { bands, segments, width, blocks, tests, ...(tiled ? { shapes } : {}) };
}

async function partOf(ref: RatingsPart['ref'], host: Device): Promise<RatingsPart> {
  const partition = await host.fetch(ref);
  return { ref, partition, ratings: partition.columns.indices.length };
}

async function shuffledPart({ ref, partition, ratings }: RatingsPart, seed: number, host: Device, ctx: ExecutionContext): Promise<RatingsPart> {
  const list = await shuffleRatings(blockOf(ref, partition), seed, host, ctx);
  return { ref: list, partition: await host.fetch(list), ratings };
}

function sizesOf(range: RowRange, common: Pick<BandSizes, 'width' | 'segments'>, parts: readonly RatingsPart[], tests: readonly RatingsPart[] = []): BandSizes {
  const total = (of: readonly RatingsPart[]) => of.reduce((sum, { ratings }) => sum + ratings, 0);
  const largest = (of: readonly RatingsPart[]) => of.reduce((most, { ratings }) => Math.max(most, ratings), 0);
  return { ...common, rows: range.to - range.from, ratings: total(parts), blockRatings: largest(parts), testRatings: total(tests), testBlockRatings: largest(tests) };
}

/** What is known now are the sizes themselves, not what the plan expected of them. */
function openBand(device: Device, range: RowRange, sizes: BandSizes, params: SgdParams, steps: 'tile' | 'hogwild'): RowBand {
  const plan = devicePlan(device);
  const precision = sgdPrecision(params, plan);
  const { total, resident } = bandTotal(bandBytes(sizes, params, plan, { steps, precision }), device.capacityBytes);
  requireDeviceFit(total, plan, lessByBlocks(precision));
  return new RowBand(device, range, { features: params.rank + (params.biases ? 2 : 0), adaptive: params.rate === 'adagrad', resident });
}
