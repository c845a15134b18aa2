import type { Copies } from '../copies/copies.ts';
import { GENERATOR_VERSION } from '../parts/dataset-output.ts';
import type { RatingPreset } from '../preset.ts';
import type { RatingStatistics } from '../ratings/rating-statistics.ts';
import { type RatingTables, userDegrees } from '../ratings/rating-tables.ts';
import { copiedDegrees, type DegreeSummary, summarizeDegrees } from './degree-summary.ts';

/** dataset.json: all of it follows from preset, scale, copies and seed. */
export interface DatasetDescription {
  readonly generator: number;
  readonly preset: string;
  readonly scale: number;
  readonly seed: number;
  /** Along users and items; left out for one copy. Everything below but the shape counts all copies. */
  readonly copies?: readonly [number, number];
  readonly users: number;
  readonly items: number;
  /** Rows of each part. */
  readonly train: number;
  readonly test: number;
  /** RMSE over the test part of E[rating | planted signal]: the floor for any model, in units of the rating. */
  readonly bestTestRmse: number;
  readonly ratings: { readonly mean: number; readonly deviation: number };
  /** Ratings in both parts of the users and the items that have any. */
  readonly degrees: { readonly users: DegreeSummary; readonly items: DegreeSummary };
  /** What was asked of the generator, after scaling. */
  readonly shape: RatingPreset;
}

export function describeDataset(tables: RatingTables, scale: number, copies: Copies, statistics: RatingStatistics): DatasetDescription {
  const { preset: shape, seed } = tables;
  const { users, items } = copies;
  const { bestTestRmse, ratings } = statistics;
  return {
    generator: GENERATOR_VERSION,
    preset: shape.name,
    scale,
    seed,
    ...(users * items > 1 && { copies: [users, items] as const }),
    users: shape.users * users,
    items: shape.items * items,
    train: shape.train * users * items,
    test: shape.test * users * items,
    bestTestRmse,
    ratings,
    degrees: {
      users: copiedDegrees(summarizeDegrees(userDegrees(tables)), users, items),
      items: copiedDegrees(summarizeDegrees(statistics.itemDegrees), items, users),
    },
    shape,
  };
}
