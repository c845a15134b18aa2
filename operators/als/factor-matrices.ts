/**
 * Converts ALS factors on the host between three forms: the parts of each side, one matrix per side, and the
 * named matrices of a checkpoint. Factors in files stay there.
 */
import { areStored, type RowPart, storedNumbers, storedParts, withOwn } from '../../engine/row-parts.ts';
import { joined } from '../training/joined-parts.ts';
import { isStored, type Matrices, partsOfMatrix } from '../training/host-copy.ts';
import type { AlsStart, FactorValues, TrainedFactors, TrainedSide } from './bind/als-data.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';

/** Most numbers of a part of factors that is read from a checkpoint: 16 MiB. */
const PART_NUMBERS = 1 << 22;

export function toMatrices(factors: TrainedFactors, rank: number): Matrices {
  const { users, items } = startOf(factors, rank);
  return {
    users: users.values,
    items: items.values,
    ...(users.bias && items.bias && { 'users-bias': users.bias, 'items-bias': items.bias }),
  };
}

/** `inFiles`: true to leave matrices that are in files there. */
export function fromMatrices(matrices: Matrices, rank: number, inFiles: boolean): TrainedFactors {
  const side = (name: 'users' | 'items'): RowPart[] => {
    const [matrix, biases] = [matrices[name], matrices[`${name}-bias`] as Matrices[string] | undefined];
    const own = biases && joined(partsOfMatrix(biases));
    if (!inFiles || !isStored(matrix))
      return [{ values: joined(partsOfMatrix(matrix)), ...(own && { own }) }];
    const rows = matrix.length / rank;
    const step = Math.max(1, Math.floor(PART_NUMBERS / rank));
    const ranges = Array.from({ length: Math.ceil(rows / step) }, (_, part) => ({
      from: part * step,
      to: Math.min(rows, (part + 1) * step),
    }));
    return storedParts(
      ranges.map(({ from, to }) => ({ rows: to - from, read: () => matrix.read(from * rank, to * rank) })),
      own && ranges.map(({ from, to }) => own.subarray(from, to)),
    );
  };
  return { users: side('users'), items: side('items') };
}

/** Factors that stay as they are when a later round overwrites the memory of these. */
export function keptFactors({ users, items }: TrainedFactors): TrainedFactors {
  const side = (parts: readonly RowPart[]): RowPart[] => {
    if (areStored({ parts }))
      return parts.map((part) => (part.own ? withOwn(part, Float32Array.from(part.own)) : part));
    const bias = biasOf(parts);
    const values = joined(parts.map((part) => part.values));
    return [{ values, ...(bias && { own: bias }) }];
  };
  return { users: side(users), items: side(items) };
}

/** One matrix of each side. */
export function startOf({ users, items }: TrainedFactors, rank: number): AlsStart<FactorValues> {
  const side = (parts: readonly RowPart[]): TrainedSide<FactorValues> => {
    const bias = biasOf(parts);
    const values = areStored({ parts })
      ? storedNumbers(parts, rank)
      : joined(parts.map((part) => part.values));
    return { values, ...(bias && { bias }) };
  };
  return { users: side(users), items: side(items) };
}

/** One matrix of each side, in memory. */
export function startInMemory(factors: TrainedFactors, rank: number): AlsStart {
  const side = ({ values, ...bias }: TrainedSide<FactorValues>): TrainedSide => ({
    values: joined(partsOfMatrix(values)),
    ...bias,
  });
  const { users, items } = startOf(factors, rank);
  return { users: side(users), items: side(items) };
}

/** Copied, since biases may be the device's own memory. */
function biasOf(parts: readonly RowPart[]): Float32Array | undefined {
  const biases = parts.flatMap(({ own }) => (own ? [own] : []));
  return biases.length > 0 ? Float32Array.from(joined(biases)) : undefined;
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
