import type { KeyColumn } from '../../engine/keys/key-column.ts';
import {
  type RowPart,
  type RowParts,
  areStored,
  storedNumbers,
  storedParts,
  withOwn,
  type StoredNumbers,
} from '../../engine/row-parts.ts';
import type { AttributeCoefficients } from '../attributes/attribute-matrix.ts';
import type { RatingsProfile } from '../planner/sizes.ts';
import type { RatingBlock, Ratings } from '../ratings/ratings.ts';
import { rangesOfSize } from '../ratings/row-ranges.ts';
import type { BlockInFile } from '../ratings/sorting/columns-of-block.ts';
import type { SideNorms } from '../training/loss.ts';
import { type ModelRows, oneArray } from '../training/model-rows.ts';
import { isStored, type Matrices, partsOfMatrix } from '../training/training.ts';
import type { SizedAlsParams } from './als-params.ts';

export interface AlsData {
  readonly byUser: Ratings;
  readonly byItem: Ratings;
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /**
   * The pairs of the validation set whose user and item are in the training set, by user, with the row
   * numbers of the training set. For implicit data, the pairs to rank.
   */
  readonly test?: RatingBlock;
  /** For implicit data: the number that is added to the diagonal of each row's equations, see rowShifts. */
  readonly shifts?: Readonly<Record<'users' | 'items', Float32Array>>;
  /** For an update of a model of implicit data: 1 for the rows that have earlier ratings. */
  readonly anchors?: Readonly<Record<'users' | 'items', Uint8Array>>;
  /** The attributes of the rows of a side: see AttributeMatrix. */
  readonly attributes?: Readonly<Partial<Record<'users' | 'items', RatingBlock>>> | undefined;
  /** With biases: see itemTotals. */
  readonly totals?: Float32Array;
  /** The blocks of ratings in files, for a plan that solves a side from vertical parts: see fileBlocks. */
  readonly blocks?: FileBlocks;
}

/** Blocks R(ij) in files, in row-major order, of the sides that have them. */
export type FileBlocks = Readonly<Partial<Record<'users' | 'items', readonly BlockInFile[]>>>;

/** A matrix in host memory or in files. */
export type FactorValues = Float32Array | StoredNumbers;

/** Factors of one side; by default in host memory. */
export interface TrainedSide<Values = Float32Array> {
  /** rows x rank. */
  readonly values: Values;
  readonly bias?: Float32Array;
  /** Of the rows' attributes: features x rank, and the coefficients of biases. */
  readonly coefficients?: Coefficients | undefined;
}

/** Coefficients of attributes: features x rank, and with biases one of each feature. */
export interface Coefficients {
  readonly values: Float32Array;
  readonly bias?: Float32Array | undefined;
}

/** Factors from which training starts. */
export interface AlsStart<Values = Float32Array> {
  /** Prefix of the names of the start's partitions, if they are on a device already; see placeStart. */
  readonly name?: string;
  readonly users: TrainedSide<Values>;
  readonly items: TrainedSide<Values>;
}

/**
 * The factors of both sides in host memory or in files, in parts, in row order. With biases each part
 * includes its rows' biases.
 */
export interface TrainedFactors {
  readonly users: readonly RowPart[];
  readonly items: readonly RowPart[];
  readonly coefficients?: Readonly<Partial<Record<'users' | 'items', Coefficients>>>;
}

/** Parameters of tasks that are only known once the ratings are. */
export interface BoundParams {
  readonly biases: boolean;
  /** μ with biases, else 0. */
  readonly mean: number;
  /** The constant o of the regularization λ n^ν + o, in the unit of the given ratings. */
  readonly offset: number;
  /** The unit of the ratings: see ratingUnit. */
  readonly unit: number;
}

/** Σ (λ n_u + d) β_u² */
export function biasPenalty({ biasSum, biasPlain }: SideNorms, lambda: number, damping: number): number {
  return lambda * biasSum + damping * biasPlain;
}

/**
 * The factors as a model stores them. Biases become two more features, so that the product of two vectors is
 * the prediction:
 *
 *     [x_u, β_u + μ, 1] · [θ_v, 1, γ_v]  =  x_uᵀθ_v + β_u + μ + γ_v
 *
 * `mean`: μ, undefined without biases. `unit`: the number by which ratings were divided for training (see
 * ratingUnit); the model is in the unit of the ratings themselves.
 */
export function modelRows(
  { users, items }: TrainedFactors,
  rows: Readonly<Record<'users' | 'items', number>>,
  rank: number,
  mean: number | undefined,
  unit: number,
): ModelRows {
  const side = (name: 'users' | 'items', parts: readonly RowPart[]): RowParts => ({
    rows: rows[name],
    columns: rank + (mean === undefined ? 0 : 2),
    parts,
    ...(mean === undefined
      ? {}
      : { tail: name === 'users' ? { oneFirst: false, add: mean } : { oneFirst: true, add: 0 } }),
    ...(unit === 1 ? {} : { scale: { values: Math.sqrt(unit), own: unit } }),
  });
  return { users: side('users', users), items: side('items', items) };
}

/**
 * Converts ALS factors on the host between three forms: the parts of each side, one matrix per side, and the
 * named matrices of a checkpoint. Factors in files stay there.
 */

/** Most numbers of a part of factors that is read from a checkpoint: 16 MiB. */
const PART_NUMBERS = 1 << 22;

export function toMatrices(factors: TrainedFactors, rank: number): Matrices {
  const { users, items } = startOf(factors, rank);
  return {
    users: users.values,
    items: items.values,
    ...(users.bias && items.bias && { 'users-bias': users.bias, 'items-bias': items.bias }),
    ...coefficientMatrices('users', users.coefficients),
    ...coefficientMatrices('items', items.coefficients),
  };
}

function coefficientMatrices(side: 'users' | 'items', coefficients: Coefficients | undefined): Matrices {
  if (coefficients === undefined) return {};
  const { values, bias } = coefficients;
  return { [`${side}-coefficients`]: values, ...(bias && { [`${side}-bias-coefficients`]: bias }) };
}

function coefficientsOf(side: 'users' | 'items', matrices: Matrices): TrainedFactors['coefficients'] {
  const of = (name: string) => {
    const matrix = matrices[name] as Matrices[string] | undefined;
    return matrix && oneArray(partsOfMatrix(matrix));
  };
  const values = of(`${side}-coefficients`);
  return values && { [side]: { values, bias: of(`${side}-bias-coefficients`) } };
}

/** `inFiles`: true to leave matrices that are in files there. */
export function fromMatrices(matrices: Matrices, rank: number, inFiles: boolean): TrainedFactors {
  const side = (name: 'users' | 'items'): RowPart[] => {
    const [matrix, biases] = [matrices[name], matrices[`${name}-bias`] as Matrices[string] | undefined];
    const own = biases && oneArray(partsOfMatrix(biases));
    if (!inFiles || !isStored(matrix))
      return [{ values: oneArray(partsOfMatrix(matrix)), ...(own && { own }) }];
    const rows = matrix.length / rank;
    const ranges = rangesOfSize(rows, Math.max(1, Math.floor(PART_NUMBERS / rank)));
    return storedParts(
      ranges.map(({ from, to }) => ({ rows: to - from, read: () => matrix.read(from * rank, to * rank) })),
      own && ranges.map(({ from, to }) => own.subarray(from, to)),
    );
  };
  const coefficients = { ...coefficientsOf('users', matrices), ...coefficientsOf('items', matrices) };
  return { users: side('users'), items: side('items'), coefficients };
}

/** Factors that stay as they are when a later round overwrites the memory of these. */
export function keptFactors({ users, items, coefficients = {} }: TrainedFactors): TrainedFactors {
  const side = (parts: readonly RowPart[]): RowPart[] => {
    if (areStored({ parts }))
      return parts.map((part) => (part.own ? withOwn(part, Float32Array.from(part.own)) : part));
    const bias = biasOf(parts);
    const values = oneArray(parts.map((part) => part.values));
    return [{ values, ...(bias && { own: bias }) }];
  };
  const fitted = Object.entries(coefficients).map(([name, { values, bias }]) => [
    name,
    { values: Float32Array.from(values), bias: bias && Float32Array.from(bias) },
  ]);
  return {
    users: side(users),
    items: side(items),
    coefficients: Object.fromEntries(fitted) as typeof coefficients,
  };
}

/** One matrix of each side. */
export function startOf(
  { users, items, coefficients }: TrainedFactors,
  rank: number,
): AlsStart<FactorValues> {
  const side = (parts: readonly RowPart[]): TrainedSide<FactorValues> => {
    const bias = biasOf(parts);
    const values = areStored({ parts })
      ? storedNumbers(parts, rank)
      : oneArray(parts.map((part) => part.values));
    return { values, ...(bias && { bias }) };
  };
  const { users: ofUsers, items: ofItems } = coefficients ?? {};
  return {
    users: { ...side(users), ...(ofUsers && { coefficients: ofUsers }) },
    items: { ...side(items), ...(ofItems && { coefficients: ofItems }) },
  };
}

/** One matrix of each side, in memory. */
export function startInMemory(factors: TrainedFactors, rank: number): AlsStart {
  const side = ({ values, ...bias }: TrainedSide<FactorValues>): TrainedSide => ({
    values: oneArray(partsOfMatrix(values)),
    ...bias,
  });
  const { users, items } = startOf(factors, rank);
  return { users: side(users), items: side(items) };
}

/** Copied, since biases may be the device's own memory. */
function biasOf(parts: readonly RowPart[]): Float32Array | undefined {
  const biases = parts.flatMap(({ own }) => (own ? [own] : []));
  return biases.length > 0 ? Float32Array.from(oneArray(biases)) : undefined;
}

/** Length of each matrix of a checkpoint. */
export function alsMatrices(
  { users, items, attributes = {} }: RatingsProfile,
  { rank, biases }: SizedAlsParams,
): Readonly<Record<string, number>> {
  const fitted = Object.entries(attributes).map(([side, sizes]) => ({
    [`${side}-coefficients`]: sizes.features * rank,
    ...(biases && { [`${side}-bias-coefficients`]: sizes.features }),
  }));
  return Object.assign(
    { users: users * rank, items: items * rank },
    biases ? { 'users-bias': users, 'items-bias': items } : {},
    ...fitted,
  ) as Record<string, number>;
}

/**
 * The coefficients in the form of the model's rows (see modelRows), so that Σ f_j values_j is the row of a user
 * or item with the features f: what is added to each row is added to the constant feature's.
 */
export function modelCoefficients(
  { coefficients = {} }: TrainedFactors,
  rank: number,
  mean: number | undefined,
  unit: number,
): Readonly<Partial<Record<'users' | 'items', AttributeCoefficients>>> {
  const side = (name: 'users' | 'items', { values, bias }: Coefficients): AttributeCoefficients => {
    const features = values.length / rank;
    const columns = rank + (mean === undefined ? 0 : 2);
    const [own, one] = name === 'users' ? [rank, rank + 1] : [rank + 1, rank];
    const rows = new Float32Array(features * columns);
    for (let feature = 0; feature < features; feature++) {
      const at = feature * columns;
      for (let k = 0; k < rank; k++) rows[at + k] = Math.sqrt(unit) * values[feature * rank + k];
      if (mean !== undefined) rows[at + own] = unit * (bias?.[feature] ?? 0);
    }
    if (mean !== undefined) rows[one] = 1;
    if (mean !== undefined && name === 'users') rows[own] += mean;
    return { features, columns, values: rows };
  };
  return Object.fromEntries(
    Object.entries(coefficients).map(([name, one]) => [name, side(name as 'users' | 'items', one)]),
  );
}
