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
  /** Argument of the aggregation. Absent in a final step, which reads states, and for counts of rows. */
  readonly checked?: Checked;
  /** Positions of its state columns. */
  readonly states: readonly number[];
}

/**
 * Steps of a grouping:
 *
 *     partial   rows -> states, for a part of the rows
 *     final     states -> results
 *     whole     rows -> results
 *
 * The states of an aggregation are columns after the keys. Every function has states; countDistinct
 * and collectList have lists. A list of distinct values is never longer than the rows, and 'final' reads the
 * states in the order of the rows.
 */
export type AggregateStep = 'partial' | 'final' | 'whole';
