import { strideOf } from '../../device/resources.ts';
import { type KernelDescriptor, reads, writes } from '../kernel.ts';
import { type SgdStepParams, stepValues, teamNeeds } from './sgd-step.ts';

export type SgdTilesParams = SgdStepParams & {
  /** Columns that a tile holds. */
  readonly places: number;
};

/** Approximate number of ratings of a batch. */
const TILE_BATCH = 1024;

/** Batches of every tile, when the largest tile has `largest` ratings: equally many for each team. */
export function tileBatches(largest: number, { threads, lanes }: Pick<SgdTilesParams, 'threads' | 'lanes'>): number {
  const teams = threads / lanes;
  return teams * Math.max(1, Math.ceil(largest / (teams * TILE_BATCH)));
}

/** Bytes of workgroup memory that a column takes. */
function placeBytes(features: number, precision: 'f32' | 'f16', adaptive: boolean): number {
  return strideOf(features) * (precision === 'f16' ? 2 : 4) + (adaptive ? 4 : 0);
}

/**
 * An epoch of SGD with a workgroup for each tile of columns. Every rating is stepped once; teams of a workgroup may overwrite each
 * other's step of a column, and teams of different workgroups each other's step of a row (Hogwild!).
 */
export const sgdTilesKernel: KernelDescriptor<SgdTilesParams> = {
  name: 'sgd-tiles',
  bindings: [...reads('starts', 'ratings', 'columns'), ...writes('row_factors', 'column_factors', 'row_sums', 'column_sums')],
  uniforms: [
    { name: 'tiles', type: 'u32' },
    { name: 'rate', type: 'f32' },
    { name: 'row_lambda', type: 'f32' },
    { name: 'column_lambda', type: 'f32' },
    { name: 'batches', type: 'u32' },
    { name: 'multiplier', type: 'u32' },
    { name: 'offset', type: 'u32' },
    { name: 'level', type: 'f32' },
  ],
  needs: ({ lanes }) => teamNeeds(lanes),
  values: (params) => ({ ...stepValues(params), PLACES: params.places }),
  workgroup: ({ features, precision, places, threads, adaptive }) => ({ threads, bytes: places * placeBytes(features, precision, adaptive) }),
};
