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
 * A grouping runs in one step ('whole') or in two, with an exchange of rows between them:
 *
 *     partial   rows -> states, for a part of the rows
 *     final     states -> results
 *     whole     rows -> results
 *
 * A state is the intermediate result of an aggregate, such as sum and count for a mean. States are columns
 * after the keys. countDistinct and collectList have a list of values as their state. A list of distinct
 * values is never longer than the rows, and 'final' reads the states in the order of the rows.
 */
export type AggregateStep = 'partial' | 'final' | 'whole';
