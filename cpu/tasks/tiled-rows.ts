import type { ScopeOf } from '../handler.ts';
import { biasColumn } from './biases.ts';
import { WORKSPACE_BYTES, workspaceOf } from './row-chunks.ts';
import { layoutOf, type SolvedTiles, TiledGroup, type TiledRow } from './tiled-group.ts';

/**
 * Solves those rows in [from, to) that have tiled.from to tiled.to ratings, by conjugate gradients tile by
 * tile, in groups whose ratings fit scratch. A row's solution does not depend on its group.
 */
export function solveTiledRows(
  scope: ScopeOf<'update'>,
  tiled: NonNullable<ScopeOf<'update'>['params']['tiled']>,
): SolvedTiles {
  const { from, to, runs = [] } = scope.params;
  const offsets = scope.partition('block').columns.offsets as Int32Array;
  const fixed = scope.matrix('fixed');
  const shape = {
    tiles: Math.ceil(fixed.rows / tiled.tileRows),
    size: fixed.stride * 4,
    biased: biasColumn(scope, 'bias') !== undefined,
  };
  const solved: SolvedTiles = { rows: 0, ratings: 0, objectives: [0, ...runs.map(() => 0)], badRow: -1 };
  const limit = workspaceOf(scope) + WORKSPACE_BYTES;
  let group: TiledRow[] = [];
  let ratings = 0;
  const solve = () => {
    const layout = layoutOf(workspaceOf(scope), { ...shape, rows: group.length, ratings });
    if (layout.end > limit) throw new Error('the scratch memory is too small for a row');
    if (group.length > 0 && !scope.cancelled())
      new TiledGroup(scope, group, layout, { ...shape, tileRows: tiled.tileRows, ratings }).solve(solved);
    [group, ratings] = [[], 0];
  };
  for (let row = from; row < to; row++) {
    const n = offsets[row + 1] - offsets[row];
    if (n < tiled.from || n > tiled.to) continue;
    if (
      group.length > 0 &&
      layoutOf(workspaceOf(scope), { ...shape, rows: group.length + 1, ratings: ratings + n }).end > limit
    )
      solve();
    group.push({ row, n });
    ratings += n;
  }
  solve();
  return solved;
}
