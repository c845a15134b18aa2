import type { Field } from 'apache-arrow';
import type { Checked } from '../../../engine/expressions/check.ts';
import type { AggregateForm } from './functions.ts';

/** A key of the result, and its position in the input. */
export interface GroupKey {
  readonly index: number;
  readonly field: Field;
}

/** An aggregation over the columns of an input. */
export interface AggregatedColumn {
  readonly form: AggregateForm;
  /** Its values; absent of states, and of counts of rows. */
  readonly checked?: Checked;
  /** Positions of its states. */
  readonly states: readonly number[];
}

/**
 * 'partial': rows to states, of a part of the rows; 'final': states to results; 'whole': rows to results. The
 * states of an aggregation are columns after the keys. All functions have states, also countDistinct and
 * collectList, whose states are lists: a list of distinct values is never longer than the rows, and 'final'
 * takes states in the order of the rows.
 */
export type AggregateStep = 'partial' | 'final' | 'whole';
