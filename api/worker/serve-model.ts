import { CancelledError, FactorFlowError, throwIfAborted } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Session } from '../session.ts';
import { ModelRequests } from './model-requests.ts';
import type { Parent } from './parent-link.ts';
import { bytesOf, nextRequest, type Request } from './requests.ts';
import type { ServeOptions } from './serve-options.ts';

/** True for a request that is followed by frames of bytes. */
function isWithBytes({ type, fields }: Request): boolean {
  return ['train', 'data'].includes(type) || (type === 'save' && fields.histories === true);
}

/**
 * Holds a model for the parent and answers requests about it until the request `end`. Usage and data errors
 * of a request are its answer; any other error ends the worker.
 */
export async function serveModel(parent: Parent, session: Session, options: ServeOptions): Promise<void> {
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
