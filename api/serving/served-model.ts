import type { JsonObject } from '../../engine/json.ts';
import { type IdForm, type IdValues, idValues } from '../../engine/keys/id-form.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import type { SearchSpace } from '../../operators/serving/search.ts';
import { type UserRule, userRule } from '../../operators/serving/fold-in/row-rule.ts';
import type { RunSession } from '../run-session.ts';
import type { Searches } from './searches.ts';

/** The parts of a model that requests need. */
export interface ServedModel {
  readonly factors: FactorModel;
  /** f: features without biases. */
  readonly rank: number;
  /** Number of ratings of each item, by position; undefined if the model does not contain them. */
  readonly itemCounts: Uint32Array | undefined;
  readonly columns: {
    readonly user: string;
    readonly item: string;
    readonly rating: string;
    readonly prediction: string;
  };
  readonly session: RunSession;
  readonly searches: Searches;
  /** Facts about the training, from the model's metadata. */
  readonly metadata: JsonObject;
}

/**
 * The ids of a side as callers receive them. Throws UsageError if numbers are wanted and one id cannot be a
 * number.
 */
export function idsOf(
  { factors, session }: Pick<ServedModel, 'factors' | 'session'>,
  side: 'user' | 'item',
): IdValues {
  return idValues(factors[`${side}s`], session.ids, side);
}

export function idFormsOf(
  served: Pick<ServedModel, 'factors' | 'session'>,
): Readonly<Record<'user' | 'item', IdForm>> {
  return { user: idsOf(served, 'user').form, item: idsOf(served, 'item').form };
}

/**
 * The rule for solving new users. Throws UsageError for a closed model, and if λ is neither given nor in the
 * model.
 */
export function ruleOf({ factors, rank, metadata, searches }: ServedModel, regParam?: number): UserRule {
  searches.requireOpen();
  return userRule(metadata, rank, () => meanOfColumn(factors.userFactors, factors.rank, rank), regParam);
}

function meanOfColumn(values: Float32Array, width: number, column: number): number {
  let sum = 0;
  for (let at = column; at < values.length; at += width) sum += values[at];
  return sum / Math.max(1, values.length / width);
}

/** A named search among all vectors of a side. */
export interface NamedSpace {
  readonly name: string;
  readonly space: () => SearchSpace;
}

/** All items, or all users; their products with a row of the other side are predictions. */
export function sideSpace({ factors }: ServedModel, side: 'user' | 'item'): NamedSpace {
  const { rank } = factors;
  return {
    name: side,
    space: () => ({
      vectors: side === 'item' ? factors.itemFactors : factors.userFactors,
      width: rank,
      rank,
      normalized: false,
    }),
  };
}

/** Vectors of one side to compare with each other, without biases. */
export function similarSpace(
  { factors, rank }: ServedModel,
  side: 'user' | 'item',
  cosine: boolean,
): NamedSpace {
  return {
    name: `${side} ${cosine ? 'cosine' : 'dot'}`,
    space: () => ({
      vectors: side === 'item' ? factors.itemFactors : factors.userFactors,
      width: factors.rank,
      rank,
      normalized: cosine,
    }),
  };
}

/**
 * Numbers of ratings as vectors of length one. A search for the vector [1] then finds the most popular
 * items.
 */
export function popularSpace(itemCounts: Uint32Array): NamedSpace {
  return {
    name: 'popular',
    space: () => {
      const vectors = new Float32Array(new SharedArrayBuffer(4 * itemCounts.length));
      vectors.set(itemCounts);
      return { vectors, width: 1, rank: 1, normalized: false };
    },
  };
}
