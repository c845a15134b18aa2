import { sharedArray } from '../../engine/partition.ts';
import { type BoundPlan, dataSetOf, partRef } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import { readRows } from '../../engine/row-parts.ts';
import type { Given } from '../../engine/run/run-steps.ts';
import type { SideNorms } from '../training/loss.ts';
import type { SgdData, SgdSide } from './data/data.ts';
import { steppedMatrices } from './data-sets.ts';
import { biasColumns, type TrainedFactors } from './factors.ts';
import { type SgdParams, shrinkOf } from './params.ts';
import type { SgdCuts } from './slices.ts';

/**
 * Standard deviation of an initial factor, for scaled ratings. A smaller one is better if there are many
 * ratings for each factor (test RMSE at MovieLens-20M's shape, k = 32: 0.739 from 0.03, 0.740 from 0.06,
 * 0.742 from 0.1), a larger one if there are few (ml-latest-small with biases: 0.848, 0.844, 0.843).
 */
const SPREAD = 0.06;

/**
 * Parameters of the task `initialize` for the rows or the columns of R. Without biases all factors are
 * shifted by the same amount, so that initial products are near the mean rating: k · √(|μ|/σk) · ±√(|μ|/σk) =
 * μ/σ.
 */
export function startParams(
  { rank, seed, biases }: Pick<SgdParams, 'rank' | 'seed' | 'biases'>,
  { scale }: Pick<SgdData, 'scale'>,
  isRow: boolean,
) {
  const level = scale.mean / scale.deviation;
  const shift = Math.sqrt(Math.abs(level) / rank) * (isRow ? 1 : Math.sign(level));
  const form = biases ? { first: 2, oneAt: biasColumns(isRow).one } : { shift };
  return { rank, seed, norm: SPREAD * Math.sqrt(rank), ...form };
}

/** The norms of a side of which SGD's penalty consists, for users and items. */
export type PenaltyNorms = Readonly<Record<'users' | 'items', Pick<SideNorms, 'weighted' | 'plain'>>>;

/** The expected norms of random initial factors, as `weighted-norm` measures them. */
export function startNorms(data: SgdData, params: SgdParams): PenaltyNorms {
  const ratings = data.ratings.ratings;
  const norms = ({ name, labels }: SgdSide) => {
    const { norm, shift = 0 } = startParams(params, data, true);
    const squares = norm ** 2 + params.rank * shift ** 2;
    return {
      weighted: ratings * (squares + (params.biases ? 1 : 0)),
      plain: shrinkOf(params)[name].offset * labels.label.length * squares,
    };
  };
  const [rows, columns] = [norms(data.rows), norms(data.columns)];
  return data.rows.name === 'users' ? { users: rows, items: columns } : { users: columns, items: rows };
}

/**
 * The stages before the first epoch if initial factors are given: matrices are copied from host memory
 * instead of being drawn or set to zero.
 */
export function startFrom({ start }: PhysicalPlan, { rowSums }: TrainedFactors, epoch: number): Stage[] {
  const withSums = rowSums !== undefined;
  return start.flatMap((stage): Stage[] => {
    const { name, at, work } = stage;
    if (name === 'initialize-rows') {
      const data = steppedMatrices(withSums).map((matrix) => matrix.name);
      return [{ name, at, work: { kind: 'exchange', how: 'move', data, to: 'from-host' } }];
    }
    if (name === 'first-batch-order' && work.kind === 'tasks') {
      const tasks = work.tasks.map((task) => ({ ...task, params: { ...task.params, epoch } }));
      return [{ ...stage, work: { kind: 'tasks', tasks } }];
    }
    return name === 'initialize-columns' || (withSums && work.kind === 'allocate') ? [] : [stage];
  });
}

/**
 * The partitions of given initial factors, in host memory. Segments of columns are padded to the width of the
 * widest.
 */
export function givenFactors(bound: BoundPlan, start: TrainedFactors, cuts: SgdCuts): Given[] {
  return steppedMatrices(true).flatMap(({ name, side, key }) => {
    const matrix = start[key];
    if (matrix === undefined) return [];
    const set = dataSetOf(bound, name);
    return cuts[`${side}s`].map(({ from, to }, part): Given => {
      const own = readRows(matrix, from, to, true);
      const { rows } = set.parts[part];
      const values = to - from === rows ? own : sharedArray(Float32Array, rows * matrix.columns);
      if (values !== own) values.set(own);
      const packed = set.packed ? { packed: true } : {};
      return [partRef(bound, set, part, 0), { layout: 'factors', rows, columns: { values }, ...packed }];
    });
  });
}
