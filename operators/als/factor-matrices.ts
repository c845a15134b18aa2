/**
 * Converts ALS factors in host memory between three forms: the parts of each side, one matrix per side, and
 * the named matrices of a checkpoint.
 */
import type { RowPart } from '../../engine/row-parts.ts';
import { joined } from '../training/joined-parts.ts';
import { type Matrices, partsOfMatrix } from '../training/host-copy.ts';
import type { AlsStart, TrainedFactors, TrainedSide } from './bind/als-data.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';

export function toMatrices(factors: TrainedFactors): Matrices {
  const { users, items } = startOf(factors);
  // The bias may be the device's own memory, so it is copied.
  return {
    users: users.values,
    items: items.values,
    ...(users.bias &&
      items.bias && {
        'users-bias': Float32Array.from(users.bias),
        'items-bias': Float32Array.from(items.bias),
      }),
  };
}

export function fromMatrices({
  users,
  items,
  'users-bias': usersBias,
  'items-bias': itemsBias,
}: Matrices): TrainedFactors {
  const part = (matrix: Matrices[string], bias?: Matrices[string]): RowPart => ({
    values: joined(partsOfMatrix(matrix)),
    ...(bias && { own: joined(partsOfMatrix(bias)) }),
  });
  return { users: [part(users, usersBias)], items: [part(items, itemsBias)] };
}

/** Joins the parts of each side. */
export function startOf({ users, items }: TrainedFactors): AlsStart {
  const side = (parts: readonly RowPart[]): TrainedSide => {
    const biases = parts.flatMap(({ own }) => (own ? [own] : []));
    return {
      values: joined(parts.map(({ values }) => values)),
      ...(biases.length > 0 && { bias: joined(biases) }),
    };
  };
  return { users: side(users), items: side(items) };
}

/** Length of each matrix of a checkpoint. */
export function alsMatrices(
  users: number,
  items: number,
  { rank, biases }: SizedAlsParams,
): Readonly<Record<string, number>> {
  return {
    users: users * rank,
    items: items * rank,
    ...(biases ? { 'users-bias': users, 'items-bias': items } : {}),
  };
}
