import { readFactorFrame } from '../../connectors/model/factor-frames.ts';
import { CapacityError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { shown } from '../../engine/shown.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { Recommend } from '../../operators/serving/recommend.ts';
import { MAXIMUM_RANK } from '../../operators/params/common.ts';
import { checkCount } from '../serving/request-options.ts';
import type { Session } from '../session.ts';
import { FactorSide } from './factor-side.ts';
import type { Opening } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { nextRequest, type Request, sideOf, whole } from './requests.ts';

const names = { user: 'user', item: 'item', prediction: 'prediction' } as const;

/**
 * Copies of the factors at the peak: as they arrived, sorted by id, and the items once more by norm, in
 * addition to the lists.
 */
const COPIES = 3;

/**
 * Answers requests for lists of the best items until the request `end`. Users are forgotten after their
 * lists; items stay until others arrive.
 */
export async function serveRecommend(
  parent: Parent,
  { params }: Opening,
  session: Session,
  signal: AbortSignal,
): Promise<void> {
  const rank = rankOf({ ...params });
  const sides = { users: new FactorSide(rank), items: new FactorSide(rank) };
  let items: ReturnType<FactorSide['take']> | undefined;
  for (;;) {
    const request = await nextRequest(parent.cursor);
    if (request.type === 'end') return;
    const fields = await answer(request);
    await parent.send({ type: 'answer', id: request.id, ...fields });
    throwIfAborted(signal, 'recommend');
  }

  async function answer({ type, id, fields, payload }: Request): Promise<JsonObject> {
    if (type === 'factors') {
      const name = sideOf(fields);
      const side = sides[name];
      if (name === 'items') items = undefined;
      side.add(readFactorFrame(payload, rank));
      requireMemory((sides.users.rows + (items?.rows ?? sides.items.rows)) * 4 * rank * COPIES);
      return { rows: side.rows };
    }
    if (type === 'recommend') return { rows: await recommend(id, whole(fields, 'n')) };
    throw new UsageError(`unknown request ${type}`, { advice: 'There are: factors, recommend, end' });
  }

  function requireMemory(bytes: number): void {
    if (bytes > session.memoryBudget)
      throw new CapacityError(
        `the factors take about ${formatBytes(bytes)}, and the budget is ${formatBytes(session.memoryBudget)}`,
        { phase: 'recommend', advice: 'Send fewer users at a time, or raise the budget' },
      );
  }

  function recommend(id: number, n: number): Promise<number> {
    checkCount(n);
    const users = sides.users.take('users');
    items ??= sides.items.take('items');
    const factors = {
      users: users.ids,
      items: items.ids,
      userFactors: users.factors,
      itemFactors: items.factors,
    };
    const source = new Recommend({ rank, ...factors }, { n, columns: names });
    return sendLists(id, source, parent, session.context({ signal, onEvent: parent.onEvent }));
  }
}

/** Sends the lists of all users, and returns the number of their rows. */
async function sendLists(id: number, source: Recommend, parent: Parent, context: ExecutionContext) {
  let rows = 0;
  await Holdings.ofRun(context, async (ctx) => {
    const lists = await source.execute(ctx);
    for await (const batch of lists) {
      const frame = new RowStream(lists.schema, false);
      frame.add(batch);
      rows += batch.numRows;
      await parent.send({ type: 'lists', id, rows: batch.numRows }, frame.take());
      throwIfAborted(ctx.signal, 'recommend');
    }
  });
  return rows;
}

/** Throws UsageError unless the rank is the only parameter. */
function rankOf({ rank, ...others }: JsonObject): number {
  const [stray] = Object.keys(others);
  if (stray !== undefined)
    throw new UsageError(`unknown parameter ${stray}`, { advice: 'recommend has one: rank' });
  if (Number.isInteger(rank) && Number(rank) >= 1 && Number(rank) <= MAXIMUM_RANK) return Number(rank);
  throw new UsageError(`rank must be a whole number from 1 to ${MAXIMUM_RANK}, got ${shown(rank)}`);
}
