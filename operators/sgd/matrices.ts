import { type Matrices, partsOfMatrix } from '../training/host-copy.ts';
import { type SteppedMatrix, steppedMatrices } from './data-sets.ts';
import type { SgdData } from './data/data.ts';
import type { TrainedFactors } from './factors.ts';
import { sgdFeatures, type SgdParams } from './params.ts';

/** Collects trained factors from the parts of each matrix, which have no padding. */
export function trainedFactors(
  params: SgdParams,
  partsOf: (matrix: SteppedMatrix) => readonly Float32Array[],
): TrainedFactors {
  const matrices = matricesOf(params).map(({ columns, ...matrix }) => {
    const parts = partsOf(matrix).map((values) => ({ values }));
    const rows = parts.reduce((sum, { values }) => sum + values.length / columns, 0);
    return [matrix.key, { rows, columns, parts }] as const;
  });
  return Object.fromEntries(matrices) as unknown as TrainedFactors;
}

/** The matrices of a checkpoint. */
export function toMatrices(factors: TrainedFactors): Matrices {
  return Object.fromEntries(
    steppedMatrices(factors.rowSums !== undefined).map(({ name, key }) => [
      name,
      factors[key]?.parts.map(({ values }) => values) ?? [],
    ]),
  );
}

export function fromMatrices(matrices: Matrices, params: SgdParams): TrainedFactors {
  return trainedFactors(params, ({ name }) => partsOfMatrix(matrices[name]));
}

/** Length of each matrix of a checkpoint. */
export function sgdMatrices(
  { ratings, columnOffsets }: SgdData,
  params: SgdParams,
): Readonly<Record<string, number>> {
  const rows = { row: ratings.rows, column: columnOffsets.length - 1 };
  return Object.fromEntries(
    matricesOf(params).map(({ name, side, columns }) => [name, rows[side] * columns]),
  );
}

/** The matrices that a run updates, with the row length of each. */
function matricesOf(params: SgdParams) {
  return steppedMatrices(params.rate === 'adagrad').map((matrix) => ({
    ...matrix,
    columns: matrix.key === 'rows' || matrix.key === 'columns' ? sgdFeatures(params) : 1,
  }));
}
