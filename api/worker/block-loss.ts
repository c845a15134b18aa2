import type { JsonObject } from '../../engine/json.ts';
import { MOST_CANCELLED } from '../../operators/als/solved-loss.ts';
import { whole } from './requests.ts';
import type { RowBlock } from './row-block.ts';

/**
 * Largest ratio of Σ r² to Σ e² at which the error of users without fixed rows is computed from their solve: in
 * float32 about three digits are left.
 */
const MOST_WITHOUT_PASS = 1e4;

/**
 * The answer to the request `loss`: a block's part of the loss. Of users it includes the errors of their ratings,
 * by a pass over them, or with the field `solved` from the objective of their solve. `held`: the version of the
 * fixed rows that the worker has for the block.
 */
export async function lossOfBlock(
  block: RowBlock,
  held: number | undefined,
  fields: JsonObject,
): Promise<JsonObject> {
  const solver = block.started;
  if (solver === undefined || block.version !== whole(fields, 'version')) return { missing: 'version' };
  if (block.side === 'items') return { ...(await solver.loss(false)) };
  const isFixed = block.ratings === 0 || held === whole(fields, 'fixed');
  if (fields.solved === true) {
    const solved = await solver.solvedLoss(isFixed ? MOST_CANCELLED : MOST_WITHOUT_PASS);
    if (solved !== undefined) return solved;
  }
  return isFixed ? { ...(await solver.loss(true)) } : { missing: 'fixed' };
}
