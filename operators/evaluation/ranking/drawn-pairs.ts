import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/hand-over.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import { drawUsers, rowsAt, withUsers } from './ranked-users.ts';
import type { Ranked } from './ranked-test.ts';
import type { UsersToRank } from './rankings.ts';

/**
 * A model to measure with its test pairs and the pairs seen in training, as blocks over the model's users and
 * items.
 */
export interface RankedPairs extends UsersToRank {
  readonly model: FactorModel;
  readonly missing: Ranked['missing'];
  /** Items to rank for each user, if not all. */
  readonly lists?: RatingBlock | undefined;
}

/** The pairs to rank by baselines, which use the items of a model and not its factors. */
export type BaselinePairs = Omit<RankedPairs, 'model' | 'missing'> & {
  readonly model: Pick<RankedPairs['model'], 'items'>;
};

/**
 * Draws `most` of the users who have test pairs and keeps only their pairs. Users that the model does not
 * know may count with measures of 0; their number is then reduced by the same proportion.
 */
export async function drawnPairs(
  pairs: RankedPairs,
  { most, seed }: { readonly most: number; readonly seed: number },
  ctx: ExecutionContext,
): Promise<{ readonly pairs: RankedPairs; readonly availableUsers: number }> {
  const { model, positives, seen, missing, lists } = pairs;
  const eligible = Uint32Array.from({ length: positives.rows }, (_, user) => user).filter(
    (user) => positives.offsets[user + 1] > positives.offsets[user] || (missing?.positives[user] ?? 0) > 0,
  );
  const unknown = missing?.users ?? 0;
  const availableUsers = eligible.length + unknown;
  if (availableUsers <= most) return { pairs, availableUsers };
  const known = Math.round((most * eligible.length) / availableUsers);
  const drawn = drawUsers(model.users, eligible, known, seed);
  const ranked = {
    lists: lists && rowsAt(lists, drawn),
    model: withUsers(model, drawn),
    positives: rowsAt(positives, drawn),
    seen: seen && (await givenRows(seen, drawn, ctx)),
    missing: missing && {
      positives: Int32Array.from(drawn, (user) => missing.positives[user]),
      users: most - known,
    },
  };
  return { pairs: ranked, availableUsers };
}

/** Some rows of a block as a block in the memory of the CPU's threads. */
export async function givenRows(
  block: RatingBlock,
  positions: Uint32Array,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const rows = rowsAt(block, positions);
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[rows.ref, hostForm(rows)]]);
  return rows;
}
