import type { Side } from '../../../engine/stream/binary-operator.ts';

export const joinKinds = ['inner', 'left', 'right', 'full', 'semi', 'anti'] as const;

/**
 * The rows of a join: pairs of rows with equal keys (`inner`), with the rows of the left, the right or both
 * that have no match (`left`, `right`, `full`), or the rows of the left that have a match (`semi`) or none
 * (`anti`).
 */
export type JoinKind = (typeof joinKinds)[number];

/** A join of two inputs, left and right. */
export interface JoinParams {
  readonly kind: JoinKind;
  /** The columns of each side whose values are compared, in pairs. */
  readonly keys: Readonly<Record<Side, readonly string[]>>;
  /** Added to names of the right's columns that the left has, too. */
  readonly suffix?: string;
  /** The side that is held in memory; the other one streams. */
  readonly build: Side;
  /** The columns of the result; default: all. */
  readonly keeps?: readonly string[];
}

export function otherSide(side: Side): Side {
  return side === 'left' ? 'right' : 'left';
}

/** True where the rows of a side that have no match are rows of the result. */
export function keepsUnmatched(kind: JoinKind, side: Side): boolean {
  return kind === side || kind === 'full';
}

/** True for kinds that only return rows of the left. */
export function keepsLeftOnly(kind: JoinKind): boolean {
  return kind === 'semi' || kind === 'anti';
}

/**
 * True where each part of the streamed side can be joined by itself with all of the held side: no row of the
 * result depends on the absence of matches in the other parts.
 */
export function mayBroadcast({ kind, build }: Pick<JoinParams, 'kind' | 'build'>): boolean {
  return keepsLeftOnly(kind) ? build === 'right' : !keepsUnmatched(kind, build);
}
