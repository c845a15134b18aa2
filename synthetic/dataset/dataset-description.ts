import type { Copies } from '../copies/copies.ts';
import { GENERATOR_VERSION } from '../parts/dataset-output.ts';
import type { RatingPreset } from '../preset.ts';
import type { RatingStatistics } from '../ratings/rating-statistics.ts';
import { type RatingTables, userDegrees } from '../ratings/rating-tables.ts';
import { copiedDegrees, type DegreeSummary, summarizeDegrees } from './degree-summary.ts';

/** The contents of dataset.json, which follow from preset, scale, copies and seed. */
export interface DatasetDescription {
  readonly generator: number;
  readonly preset: string;
  readonly scale: number;
  readonly seed: number;
  /**
   * Copies along users and items; absent for one copy. The counts below include all copies, but `shape`
   * describes one.
   */
  readonly copies?: readonly [number, number];
  readonly users: number;
  readonly items: number;
  /** Rows of each part. */
  readonly train: number;
  readonly test: number;
  /**
   * RMSE of E[rating | planted signal] over the test part, in units of the rating: the floor for any model.
   */
  readonly bestTestRmse: number;
  readonly ratings: { readonly mean: number; readonly deviation: number };
  /** Ratings in both parts together, of each user and item with at least one. */
  readonly degrees: { readonly users: DegreeSummary; readonly items: DegreeSummary };
  /** The preset after scaling. */
  readonly shape: RatingPreset;
}

export function describeDataset(
  tables: RatingTables,
  scale: number,
  copies: Copies,
  statistics: RatingStatistics,
): DatasetDescription {
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
