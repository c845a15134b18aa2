import type { Side } from '../../../engine/stream/binary-operator.ts';

export const joinKinds = ['inner', 'left', 'right', 'full', 'semi', 'anti'] as const;

/**
 * The rows of a join: `inner` pairs of rows with equal keys; `left`, `right`, `full` also the rows without a
 * match of the left side, the right side or both; `semi` the rows of the left with a match; `anti` the rows
 * of the left without one.
 */
export type JoinKind = (typeof joinKinds)[number];

/** A join of two inputs, left and right. */
export interface JoinParams {
  readonly kind: JoinKind;
  /** Names of the compared columns on each side, in pairs. */
  readonly keys: Readonly<Record<Side, readonly string[]>>;
  /** Suffix for names of the right's columns that the left also has. */
  readonly suffix?: string;
  /** The side that is held in memory (build side); the other is streamed (probe side). */
  readonly build: Side;
  /** The columns of the result; default: all. */
  readonly keeps?: readonly string[];
}

export function otherSide(side: Side): Side {
  return side === 'left' ? 'right' : 'left';
}

/** True if the result has the rows of a side without a match. */
export function keepsUnmatched(kind: JoinKind, side: Side): boolean {
  return kind === side || kind === 'full';
}

/** True for kinds whose result has only rows of the left. */
export function keepsLeftOnly(kind: JoinKind): boolean {
  return kind === 'semi' || kind === 'anti';
}

/**
 * True if the streamed side may be divided and each part joined with a copy of the whole build side. That is
 * wrong if the result has the build side's unmatched rows, since a part does not know the matches in the
 * others.
 */
export function mayBroadcast({ kind, build }: Pick<JoinParams, 'kind' | 'build'>): boolean {
  return keepsLeftOnly(kind) ? build === 'right' : !keepsUnmatched(kind, build);
}
