import type { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { CancelledError, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { RatingSums, Side } from './block-facts.ts';
import { objectOf } from './opening.ts';

/** Most bytes of a request's header: it may have a list of ids, or the metadata of a model. */
const LONGEST_HEADER = 1 << 26;

const ADVICE = 'Requests are frames: see docs/reference/worker-protocol.md';

/** A frame from the parent. */
export interface Request {
  readonly type: string;
  readonly id: number;
  readonly fields: JsonObject;
  readonly payload: Uint8Array;
}

/** Requests whose payload is no longer used once they are answered. */
const BRIEF: ReadonlySet<unknown> = new Set(['fixed', 'previous', 'add']);

/** Most bytes that are kept for payloads: a frame of factors with its ids. */
const MOST_KEPT = 1 << 24;

/**
 * Memory for payloads of these requests, one at a time: allocating memory for each costs more than filling it.
 */
export class PayloadMemory {
  #bytes = new Uint8Array(0);

  /** Memory for the next payload, which replaces the one before; undefined if it is too long. */
  take(length: number): Uint8Array | undefined {
    if (length > MOST_KEPT) return undefined;
    if (length > this.#bytes.length) this.#bytes = new Uint8Array(length);
    return this.#bytes.subarray(0, length);
  }
}

/**
 * Reads the next request. Throws CancelledError if stdin ends, UsageError for bytes that are no request.
 * `memory`: for payloads that are used only until the next call.
 */
export async function nextRequest(cursor: ByteCursor, memory?: PayloadMemory): Promise<Request> {
  const head = await cursor.take(8);
  const view = new DataView(head.buffer);
  if (head.length < 8) throw new CancelledError({ phase: 'train', cause: new Error('stdin has ended') });
  const [headerBytes, payloadBytes] = [view.getUint32(0, true), view.getUint32(4, true)];
  if (headerBytes > LONGEST_HEADER)
    throw new UsageError(`a request's header has ${headerBytes} bytes`, { advice: ADVICE });
  const header = await cursor.take(headerBytes);
  if (header.length < headerBytes) throw endedInside();
  const fields = fieldsOf(header);
  const { type, id } = fields;
  const kept = BRIEF.has(type) ? memory?.take(payloadBytes) : undefined;
  const payload = kept ?? (await cursor.take(payloadBytes));
  const arrived = kept ? await cursor.copyInto(kept) : payload.length;
  if (arrived < payloadBytes) throw endedInside();
  if (typeof type !== 'string' || !Number.isSafeInteger(id))
    throw new UsageError(`a request needs a type and a number id, got ${JSON.stringify(fields)}`);
  return { type, id: id as number, fields, payload };
}

function endedInside(): CancelledError {
  return new CancelledError({ phase: 'train', cause: new Error('stdin ended inside a request') });
}

function fieldsOf(header: Uint8Array): JsonObject {
  try {
    return objectOf(JSON.parse(Buffer.from(header).toString('utf8')), 'a request');
  } catch {
    throw new UsageError("a request's header is no JSON object", { advice: ADVICE });
  }
}

/**
 * The bytes that belong to a request, from the frames `bytes` that follow it; one without a payload is the
 * last.
 */
export async function* bytesOf(cursor: ByteCursor, id: number): AsyncGenerator<Uint8Array> {
  for (;;) {
    const frame = await nextRequest(cursor);
    if (frame.type !== 'bytes' || frame.id !== id)
      throw new UsageError(`the request ${id} needs frames of bytes, and ${shown(frame.type)} arrived`, {
        advice: ADVICE,
      });
    if (frame.payload.length === 0) return;
    yield frame.payload;
  }
}

export function sumsOf(fields: JsonObject): RatingSums {
  return { ratings: number(fields, 'ratings'), squares: number(fields, 'squares') };
}

export function sideOf(fields: JsonObject): Side {
  const { side } = fields;
  if (side === 'users' || side === 'items') return side;
  throw new UsageError(`side must be users or items, got ${shown(side)}`);
}

export function text(fields: JsonObject, name: string): string {
  const value = fields[name];
  if (typeof value === 'string') return value;
  throw new UsageError(`the request ${shown(fields.type)} needs a text ${name}, got ${shown(value)}`);
}

export function number(fields: JsonObject, name: string): number {
  const value = fields[name];
  if (typeof value === 'number') return value;
  throw new UsageError(`the request ${shown(fields.type)} needs a number ${name}, got ${shown(value)}`);
}

export function whole(fields: JsonObject, name: string): number {
  const value = number(fields, name);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new UsageError(`the request ${shown(fields.type)} needs a whole number ${name}, got ${shown(value)}`);
}

/** A number from 0 to 1. */
export function share(fields: JsonObject, name: string): number {
  const value = number(fields, name);
  if (value >= 0 && value <= 1) return value;
  throw new UsageError(`the request ${shown(fields.type)} needs a ${name} from 0 to 1, got ${shown(value)}`);
}
