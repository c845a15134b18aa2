import type { IndexHead } from '../connectors/model/item-index-file.ts';
import type { JsonObject } from '../engine/json.ts';
import { JoinedRows, type RowParts, wholeRows } from '../engine/row-parts.ts';
import type { DampedMeans } from '../operators/evaluation/rating-facts.ts';
import type { ModelAttributes } from '../operators/attributes/cold-rows.ts';
import type { FactorModel } from '../operators/serving/factor-model.ts';
import type { ColdStart } from '../operators/serving/predict.ts';
import type { RatedRows } from './histories.ts';
import type { TrainingReport } from './reports/training-report.ts';
import type { RunSession } from './run-session.ts';
import type { ItemIndexes } from './serving/build-index.ts';

/** Something that each side of a model may have. */
export type SidesWith<T> = Readonly<Partial<Record<'user' | 'item', T>>>;

export function mapSides<From, To>(sides: SidesWith<From>, map: (side: From) => To): SidesWith<To> {
  return Object.fromEntries(Object.entries(sides).map(([side, from]) => [side, map(from)]));
}

export interface ModelParts extends Omit<FactorModel, 'userFactors' | 'itemFactors'> {
  /** X and Θ; if they are in parts, the parts are joined when the whole matrix is first needed. */
  readonly userFactors: Float32Array | RowParts;
  readonly itemFactors: Float32Array | RowParts;
  /** Number of ratings of each item, in id order. */
  readonly itemCounts?: Uint32Array;
  /** Number of ratings of each user, in id order. */
  readonly userCounts?: Uint32Array | undefined;
  readonly columns: {
    readonly user: string;
    readonly item: string;
    readonly rating: string;
    readonly prediction: string;
  };
  readonly coldStartStrategy: ColdStart;
  readonly session: RunSession;
  readonly training?: TrainingReport;
  /** Damped means of the training ratings, the baselines of `evaluate`. */
  readonly means?: DampedMeans;
  /** The metadata of a loaded model, without Spark's own keys. */
  readonly metadata?: JsonObject;
  /** Attributes of users or items, with their coefficients. */
  readonly attributes?: SidesWith<ModelAttributes> | undefined;
  /** The indexes in the folder that the model was loaded from, or of a model with the same items. */
  readonly indexes?: readonly IndexHead[] | ItemIndexes;
  /** The training ratings, if they can be read again. */
  readonly rated?: RatedRows | undefined;
  /** The folder that the model was loaded from. */
  readonly directory?: string;
}

/** X and Θ, each joined from its parts when the whole matrix is first needed. */
export type Sides = Readonly<Record<'user' | 'item', JoinedRows>>;

export function sidesOf({
  rank,
  userFactors,
  itemFactors,
}: Pick<ModelParts, 'rank' | 'userFactors' | 'itemFactors'>): Sides {
  const rows = (given: Float32Array | RowParts) =>
    new JoinedRows(given instanceof Float32Array ? wholeRows(given, rank) : given);
  return { user: rows(userFactors), item: rows(itemFactors) };
}

/** The factors of a model; a side is joined when it is first read. */
export function joinedFactors(
  { rank, users, items }: Pick<ModelParts, 'rank' | 'users' | 'items'>,
  sides: Sides,
): FactorModel {
  return {
    rank,
    users,
    items,
    get userFactors() {
      return sides.user.whole;
    },
    get itemFactors() {
      return sides.item.whole;
    },
  };
}

/** True if the model has biases; they are then stored as its last two features. */
export function hasBiases({ params }: JsonObject): boolean {
  return (params as JsonObject | null | undefined)?.biases === true;
}
