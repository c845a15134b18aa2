import { factorFrames } from '../../connectors/model/factor-frames.ts';
import type { IdColumn } from '../../connectors/model/id-column.ts';
import { CancelledError, FactorFlowError, throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { Session } from '../session.ts';
import { ALS } from '../training/als.ts';
import { SGD, type SgdOptions } from '../training/sgd.ts';
import { ModelRequests } from './model-requests.ts';
import { type Opening, readOpening, type ServeOptions } from './opening.ts';
import { Parent, type ParentLink } from './parent-link.ts';
import { RatingsFeed, requireWholeIds } from './ratings-feed.ts';
import { bytesOf, nextRequest, type Request } from './requests.ts';
import { serveRows } from './serve-rows.ts';

/**
 * Serves the parent process of `factorflow worker` by the protocol of docs/reference/worker-protocol.md. The
 * caller sends the frames `hello` and `error`. Throws the errors of a run, and CancelledError if the parent
 * ends.
 */
export async function serveParent(link: ParentLink, options: ServeOptions): Promise<void> {
  const parent = new Parent(link);
  const opening = await readOpening(parent.cursor, options.version);
  if (opening.heartbeat !== undefined) options.beat(opening.heartbeat);
  const signal = AbortSignal.any([options.signal, parent.gone]);
  const session = await Session.create({ ...options.machine, signal });
  try {
    const { requested, kind, adapter, description } = session.device;
    await parent.send({ type: 'device', requested, kind, adapter, description });
    if (opening.command === 'rows') await serveRows(parent, opening, session, signal);
    else if (opening.command === 'model') await serveModel(parent, session, { ...options, signal });
    else await trainForParent(parent, opening, session, { ...options, signal });
  } catch (error) {
    throw parent.violation ?? error;
  } finally {
    await session.close();
  }
  await parent.send({ type: 'done' });
}

async function trainForParent(
  parent: Parent,
  { algorithm, params, columns: { user, item, rating }, rows, checkpoints, sparkStart }: Opening,
  session: Session,
  { signal, report }: ServeOptions,
): Promise<void> {
  const columns = { userCol: user, itemCol: item, ratingCol: rating };
  const trainer =
    algorithm === 'sgd'
      ? new SGD({ biases: false, ...(params as SgdOptions), ...columns })
      : ALS.spark({ ...params, ...columns });
  const feed = await RatingsFeed.open(parent.cursor);
  requireWholeIds(feed, [user, item]);
  const batches = async function* () {
    yield* feed.batchesAndTrailer(rows);
    parent.watch();
  };
  const model = await trainer.fit(session.from(batches(), feed.schema), {
    signal,
    onEvent: parent.onEvent,
    ...(sparkStart && { continued: { sparkStart } }),
    ...(checkpoints && {
      checkpointDir: checkpoints.dir,
      checkpointInterval: checkpoints.interval,
      resume: true,
    }),
  });
  const { resumedFrom } = model.training ?? {};
  await parent.send({
    type: 'report',
    ...report(model, session),
    ...(resumedFrom && { resumedFrom: { ...resumedFrom } }),
  });
  for (const [side, arrays, { data }] of [
    ['users', model.userArrays, model.userFactors],
    ['items', model.itemArrays, model.itemFactors],
  ] as const) {
    for (const { first, rows: count, bytes } of factorFrames(
      idsOf(data.children[0].values),
      arrays.values,
      arrays.columns,
    )) {
      await parent.send({ type: 'factors', side, first, rows: count, of: arrays.rows }, bytes);
      throwIfAborted(signal, 'train');
    }
  }
}

function idsOf(ids: unknown): IdColumn {
  if (ids instanceof Int32Array) return { type: 'int32', values: ids };
  if (ids instanceof BigInt64Array) return { type: 'int64', values: ids };
  throw new Error('ids are not whole numbers');
}

/** True for a request that is followed by frames of bytes. */
function isWithBytes({ type, fields }: Request): boolean {
  return ['train', 'data'].includes(type) || (type === 'save' && fields.histories === true);
}

/**
 * Holds a model for the parent and answers requests about it until the request `end`. Usage and data errors
 * of a request are its answer; any other error ends the worker.
 */
async function serveModel(parent: Parent, session: Session, options: ServeOptions): Promise<void> {
  const requests = new ModelRequests(parent, session, options);
  let ahead = Promise.resolve();
  for (;;) {
    await ahead;
    const request = await nextRequest(parent.cursor);
    if (request.type === 'end') return;
    const { id } = request;
    const hasBytes = isWithBytes(request);
    const bytes = hasBytes ? bytesOf(parent.cursor, id) : nothing();
    // While the request is answered, the end of stdin means that the parent has ended.
    const input = followed(bytes, () => (ahead = parent.lookAhead()));
    if (!hasBytes) await input.next();
    const fields = await answered(requests, request, input, options);
    // An error leaves bytes unread.
    if (hasBytes) for await (const _ of input);
    await parent.send({ type: 'answer', id, ...fields });
    throwIfAborted(options.signal, 'train');
  }
}

async function answered(
  requests: ModelRequests,
  request: Request,
  input: AsyncGenerator<Uint8Array>,
  { failure, signal }: ServeOptions,
): Promise<JsonObject> {
  try {
    return await requests.answer(request, input);
  } catch (error) {
    throwIfAborted(signal, 'train');
    if (!(error instanceof FactorFlowError) || error instanceof CancelledError) throw error;
    return { error: failure(error) };
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Calls `onEnd` once after the last byte. */
async function* followed(bytes: AsyncGenerator<Uint8Array>, onEnd: () => void): AsyncGenerator<Uint8Array> {
  yield* bytes;
  onEnd();
}
