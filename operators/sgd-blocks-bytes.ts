import type { DevicePlan } from '../engine/physical-plan.ts';
import { blockBytes, factorBytes } from './partition.ts';
import type { SgdParams } from './sgd-params.ts';

/** Sizes of what one device has to do with by the schedule blocks. */
export interface BandSizes {
  /** Rows of its band. */
  readonly rows: number;
  /** Columns of the widest segment. */
  readonly width: number;
  /** How many segments there are. */
  readonly segments: number;
  /** Ratings of the band and of its largest block, and of the validation set's. */
  readonly ratings: number;
  readonly blockRatings: number;
  readonly testRatings?: number;
  readonly testBlockRatings?: number;
}

export interface BandBytes {
  /** Factors: versions of the band's rows, and the segments that are there at a time. */
  readonly factors: number;
  /** All of the band's blocks of ratings, and the two largest: the one that is computed and the next one. */
  readonly all: number;
  readonly two: number;
}

/** Segments on a device at a time: the one that leaves, the one that is computed, the next one. */
const SEGMENTS = 3;

/**
 * Bytes on a device. Ratings lie there as they came and as they are stepped: by tiles as many bytes again; a shuffled list of 12 bytes a
 * rating takes their place, so that only resident ones lie there twice.
 */
export function bandBytes(sizes: BandSizes, { rank, biases, rate, earlyStop }: SgdParams, { kind, strideStep: step = 8 }: DevicePlan, how: { readonly steps: 'tile' | 'hogwild'; readonly precision: 'f32' | 'f16' }): BandBytes {
  const { rows, width, segments, ratings, blockRatings, testRatings = 0, testBlockRatings = 0 } = sizes;
  const features = rank + (biases ? 2 : 0);
  const mirror = how.precision === 'f16' ? 1.5 : 1;
  const matrix = (count: number) => mirror * factorBytes(count, features, step) + (rate === 'adagrad' ? 4 * count * (kind === 'gpu' ? step : 1) : 0);
  // Of the band's rows, and of segments, which are as long as the widest whatever is in them.
  const counts = 4 * (rows + 1) + 4 * segments * (width + 1);
  const factors = (earlyStop === undefined ? 2 : 3) * matrix(rows) + SEGMENTS * matrix(width) + counts;
  const tests = testRatings === 0 ? 0 : segments * 4 * (rows + 1) + 8 * testRatings;
  const whole = blockBytes(rows, blockRatings);
  const one = how.steps === 'tile' ? whole + 8 * blockRatings : Math.max(whole, 12 * blockRatings);
  return {
    factors,
    all: segments * 4 * (rows + 1) + (how.steps === 'tile' ? 16 : 20) * ratings + tests,
    two: 2 * Math.max(one, testRatings === 0 ? 0 : blockBytes(rows, testBlockRatings)),
  };
}

/** What these come to where blocks of ratings stay if they may. */
export function bandTotal({ factors, all, two }: BandBytes, capacity: number): { readonly total: number; readonly resident: boolean } {
  const resident = factors + all <= capacity;
  return { total: factors + (resident ? all : Math.min(two, all)), resident };
}

/** What else takes less where even blocks do not fit a GPU: the end of requireDeviceFit's advice. */
export function lessByBlocks(precision: 'f32' | 'f16' | undefined): string {
  return precision === 'f16' ? 'precision f32, which keeps no copies of half the width' : 'a part of the ratings';
}
