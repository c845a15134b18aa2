import type { MatrixView, TaskScope } from '../../handler.ts';

/**
 * Byte offsets of the numbers of a row of gradients (operators/tasks/vector-tasks.ts) from the row's address.
 */
export interface GradientOffsets {
  readonly scalars: number;
  /** 0 without biases. */
  readonly sums: number;
}

/**
 * Returns the offsets. Throws if a matrix does not have the columns of gradients, or has less than `last`
 * rows.
 */
export function gradientOffsets(
  task: string,
  { rows, columns }: MatrixView,
  rank: number,
  biases: boolean,
  last: number,
): GradientOffsets {
  const features = Math.ceil(rank / 16) * 16;
  const wanted = features + 16 + (biases ? features : 0);
  if (columns !== wanted || rows < last)
    throw new Error(
      `task ${task}: a matrix of ${rows} x ${columns} has no place for gradients of ${last} rows and rank ${rank}${biases ? ' with biases' : ''}, ${wanted} columns`,
    );
  return { scalars: 4 * features, sums: biases ? 4 * (features + 16) : 0 };
}

/** True if rows of gradients have room for s, the sums that biases need. */
export function hasBiases({ columns }: MatrixView, rank: number): boolean {
  return columns > Math.ceil(rank / 16) * 16 + 16;
}

/** The Gram matrix's address and the shifts of implicit data; 0 and undefined for explicit data. */
export function shiftedBy(scope: TaskScope): {
  readonly gram: number;
  readonly shifts: Float32Array | undefined;
} {
  return scope.hasInput('gram')
    ? { gram: scope.matrix('gram').pointer, shifts: scope.partition('shifts').columns.values as Float32Array }
    : { gram: 0, shifts: undefined };
}

/** The address of a row of a matrix. */
export function rowAddress({ pointer, stride }: MatrixView, row: number): number {
  return pointer + 4 * stride * row;
}
