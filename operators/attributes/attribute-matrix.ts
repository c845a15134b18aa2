import { DataError } from '../../engine/errors.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';

/**
 * Attributes of the rows of a side (users or items) in compressed rows: F, rows x features. Row u has the
 * features `indices[offsets[u] .. offsets[u + 1])`, ascending, with their `values`. Feature 0 is the constant
 * 1 of every row.
 *
 *     a row with features 0, 3:    offsets 0 2   indices 0 3   values 1 0.5
 *
 * Arrays are shared between threads (`sharedArray`). Training gets the rows in the order of its numbered ids,
 * so without rows that have no rating. Those get `coefficients x f` after training.
 */
export interface AttributeMatrix {
  readonly rows: number;
  readonly features: number;
  readonly offsets: Int32Array;
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/**
 * Gives the attributes of the ids of a training, in their order. An id without attributes has the constant
 * feature alone. Called once, after the ratings are read.
 */
export type AttributesOf = (ids: KeyColumn, ctx: ExecutionContext) => Promise<AttributeMatrix>;

/** The sides whose rows have attributes, as `fitAls` takes them in `continued.attributes`. */
export interface SideAttributes {
  readonly users?: AttributesOf | undefined;
  readonly items?: AttributesOf | undefined;
}

/**
 * The coefficients of a side, as a training gives them in `result.coefficients`: features x columns, row by
 * row, where `columns` is the number of columns of the model's factors of that side. So the factors of a row
 * without ratings are Σ f_j values_j, biases and the constant columns of a model among them.
 */
export interface AttributeCoefficients {
  readonly features: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** Most features of one row that are not 0. */
const MOST_OF_ROW = 65_536;

/** Throws DataError if a matrix is not as AttributeMatrix describes it. `name`: 'users' or 'items'. */
export function requireAttributes(name: 'users' | 'items', matrix: AttributeMatrix, rows: number): void {
  const { features, offsets, indices, values } = matrix;
  const refuse = (text: string): never => {
    throw new DataError(`the attributes of ${name}: ${text}`, { phase: 'load' });
  };
  if (matrix.rows !== rows || offsets.length !== rows + 1 || offsets[0] !== 0)
    refuse(`${matrix.rows} rows for ${rows} ${name}`);
  if (offsets[rows] !== indices.length || indices.length !== values.length)
    refuse(`${indices.length} features and ${values.length} values, where the rows need ${offsets[rows]}`);
  for (let row = 0; row < rows; row++) {
    const [from, to] = [offsets[row], offsets[row + 1]];
    if (to <= from || indices[from] !== 0 || values[from] !== 1)
      refuse(`row ${row} does not begin with the constant feature`);
    if (to - from > MOST_OF_ROW) refuse(`row ${row} has ${to - from} features, more than ${MOST_OF_ROW}`);
    for (let k = from; k < to; k++) {
      if (!Number.isFinite(values[k])) refuse(`feature ${indices[k]} of row ${row} is ${values[k]}`);
      if (indices[k] >= features || (k > from && indices[k] <= indices[k - 1]))
        refuse(`feature ${indices[k]} of row ${row} is out of order, or not below ${features}`);
    }
  }
}
