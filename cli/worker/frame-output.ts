import { writeStandard } from '../../connectors/output/standard-output.ts';
import type { JsonObject } from '../../index.ts';

/**
 * A frame as bytes: u32 bytes of the header, u32 bytes of the payload, header (JSON, UTF-8), payload. Numbers
 * are little-endian.
 */
export function frameHead(header: JsonObject, payloadBytes: number): Uint8Array {
  const json = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(8 + json.length);
  head.writeUInt32LE(json.length, 0);
  head.writeUInt32LE(payloadBytes, 4);
  head.set(json, 8);
  return head;
}

/** Writes a frame to stdout; resolves once it is written, and rejects if the pipe is closed. */
export async function sendFrame(header: JsonObject, payload?: Uint8Array): Promise<void> {
  await writeStandard(frameHead(header, payload?.length ?? 0));
  if (payload !== undefined && payload.length > 0) await writeStandard(payload);
}
