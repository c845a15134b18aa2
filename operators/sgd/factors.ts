import { sharedArray } from '../../engine/partition.ts';
import { type RowParts, wholeRows } from '../../engine/row-parts.ts';
import type { ModelRows, ModelFactors } from '../training/model-rows.ts';
import { type Matrices, partsOfMatrix } from '../training/training.ts';
import { type SteppedMatrix, steppedMatrices } from './data-sets.ts';
import type { SgdData } from './data/data.ts';
import { sgdFeatures, type SgdParams } from './params.ts';

/**
 * With biases: the two columns of a side's matrix that precede the factors, the side's own bias and a
 * constant 1 (layout features of sgd-tasks.ts).
 */
export function biasColumns(isRow: boolean): { readonly own: 0 | 1; readonly one: 0 | 1 } {
  return isRow ? { own: 0, one: 1 } : { own: 1, one: 0 };
}

/**
 * Factors as they are trained: in the order of labels (random row numbers), without padding, in parts of
 * adjacent rows. With AdaGrad also the sums of squared gradients.
 */
export interface TrainedFactors {
  readonly rows: RowParts;
  readonly columns: RowParts;
  readonly rowSums?: RowParts;
  readonly columnSums?: RowParts;
}

/**
 * Describes one side of a model as a conversion of its trained matrix (labels x features, for scaled
 * ratings), which is applied when the model is read. Factors of both sides are multiplied by √σ, and so their
 * products by σ; biases are multiplied by σ; μ is added to the users' bias; rows are reordered from labels to
 * positions.
 *
 *     user [x, β + μ, 1] · item [θ, 1, γ]  =  xᵀθ + β + μ + γ
 */
function toModelSide(
  { rows, columns, parts }: RowParts,
  of: 'rows' | 'columns',
  data: SgdData,
  biases: boolean,
): RowParts {
  const { deviation, mean } = data.scale;
  const ofUsers = data[of].name === 'users';
  const placed = {
    rows,
    columns,
    parts,
    order: data[of].labels.label,
    scale: { values: Math.sqrt(deviation), own: deviation },
  };
  return biases
    ? {
        ...placed,
        lead: biasColumns(of === 'rows').own,
        tail: { oneFirst: !ofUsers, add: ofUsers ? mean : 0 },
      }
    : placed;
}

/** Both sides of a model, from the trained matrices. */
export function modelSides(
  { rows, columns }: Pick<TrainedFactors, 'rows' | 'columns'>,
  data: SgdData,
  { biases }: Pick<SgdParams, 'biases'>,
): ModelRows {
  const [rowSide, columnSide] = [
    toModelSide(rows, 'rows', data, biases),
    toModelSide(columns, 'columns', data, biases),
  ];
  return data.rows.name === 'users'
    ? { users: rowSide, items: columnSide }
    : { users: columnSide, items: rowSide };
}

/** The inverse of modelSides, for training that continues from a model. */
export function fromModel(model: ModelFactors, data: SgdData, params: SgdParams): TrainedFactors {
  return {
    rows: fromModelSide(model, 'rows', data, params),
    columns: fromModelSide(model, 'columns', data, params),
  };
}

function fromModelSide(
  { userFactors, itemFactors }: ModelFactors,
  of: 'rows' | 'columns',
  data: SgdData,
  { rank, biases }: SgdParams,
): RowParts {
  const { deviation, mean } = data.scale;
  const ofUsers = data[of].name === 'users';
  const factors = ofUsers ? userFactors : itemFactors;
  // The loop reads in sequence and writes at random positions, which takes half the time of the opposite.
  const { label } = data[of].labels;
  const features = sgdFeatures({ rank, biases });
  const scale = 1 / Math.sqrt(deviation);
  const first = features - rank;
  const { own, one } = biasColumns(of === 'rows');
  const biasAt = ofUsers ? rank : rank + 1;
  const all = sharedArray(Float32Array, label.length * features);
  for (let position = 0; position < label.length; position++) {
    const [from, to] = [position * features, label[position] * features];
    for (let k = 0; k < rank; k++) all[to + first + k] = scale * factors[from + k];
    if (!biases) continue;
    all[to + own] = (factors[from + biasAt] - (ofUsers ? mean : 0)) / deviation;
    all[to + one] = 1;
  }
  return wholeRows(all, features);
}

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
