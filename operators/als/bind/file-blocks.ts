import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { dataSetName } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { blocksInFiles } from '../../ratings/sorting/columns-of-block.ts';
import { isInBlocks, otherSide, sides } from '../plan/grid.ts';
import { problemOf } from '../plan/problem.ts';
import type { AlsData, FileBlocks } from './als-data.ts';
import { cutsOf } from './bind-als.ts';

/**
 * Cuts ratings in files into the blocks R(ij) of a plan, for each side that it solves from vertical parts of
 * the other side. Without such a side, or with ratings in memory, there are none.
 */
export async function fileBlocks(
  planned: PhysicalPlan,
  data: Pick<AlsData, 'byUser' | 'byItem'>,
  ctx: ExecutionContext,
): Promise<FileBlocks> {
  const { grid } = problemOf(planned);
  const whole = { users: data.byUser, items: data.byItem };
  const cut = sides.filter(
    (side) => isInBlocks(grid, side) && whole[side].parts.every(({ blocks }) => blocks === undefined),
  );
  if (cut.length === 0) return {};
  const [cuts, name] = [cutsOf(grid, data), dataSetName('blocks')];
  const blocks: FileBlocks = {};
  for (const side of cut)
    Object.assign(blocks, {
      [side]: await blocksInFiles(whole[side], cuts[otherSide[side]], `${name}/${side}`, ctx),
    });
  return blocks;
}
