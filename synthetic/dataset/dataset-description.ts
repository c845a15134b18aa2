import type { Copies } from '../copies/copies.ts';
import { GENERATOR_VERSION } from './write-dataset.ts';
import type { RatingPreset } from '../preset.ts';
import type { RatingStatistics } from '../ratings/rating-statistics.ts';
import { type RatingTables, userDegrees } from '../ratings/rating-tables.ts';

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

/** The numbers of ratings of users (or items) with at least one; `rated` is the number of these users. */
interface DegreeSummary {
  readonly rated: number;
  readonly minimum: number;
  readonly median: number;
  readonly mean: number;
  readonly maximum: number;
}

/** Counts users by degree instead of sorting them: there can be a hundred million. */
export function summarizeDegrees(degrees: Int32Array): DegreeSummary {
  let [rated, sum, minimum, maximum] = [0, 0, Infinity, 0];
  for (const degree of degrees) {
    if (degree === 0) continue;
    rated++;
    sum += degree;
    if (degree < minimum) minimum = degree;
    if (degree > maximum) maximum = degree;
  }
  if (rated === 0) return { rated, minimum: 0, median: 0, mean: 0, maximum: 0 };
  const having = new Uint32Array(maximum + 1);
  for (const degree of degrees) having[degree]++;
  having[0] = 0;
  const at = (place: number) => {
    let before = 0;
    for (let degree = minimum; ; degree++) if ((before += having[degree]) > place) return degree;
  };
  return {
    rated,
    minimum,
    median: (at((rated - 1) >>> 1) + at(rated >>> 1)) / 2,
    mean: sum / rated,
    maximum,
  };
}

/**
 * The summary for `along` copies of the users (or items). Each of them has ratings in `across` copies of the
 * other side.
 */
function copiedDegrees({ rated, ...degrees }: DegreeSummary, along: number, across: number): DegreeSummary {
  const { minimum, median, mean, maximum } = degrees;
  const [most, least] = [maximum * across, minimum * across];
  return {
    rated: rated * along,
    minimum: least,
    median: median * across,
    mean: mean * across,
    maximum: most,
  };
}
