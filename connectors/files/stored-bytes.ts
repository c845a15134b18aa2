import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { fileProblem } from './file-problem.ts';
import { inputName, STANDARD_STREAM } from './path-kinds.ts';

/** Stored bytes of a file or of stdin, chunk by chunk; those of a file from a position on. Throws DataError that names the file. */
export async function* storedBytes(file: string, from?: number): AsyncGenerator<Uint8Array> {
  const stream: Readable = file === STANDARD_STREAM ? process.stdin : createReadStream(file, { highWaterMark: 1 << 18, ...(from && { start: from }) });
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw fileProblem(error, 'read', inputName(file));
  } finally {
    stream.destroy();
  }
}

/** The first bytes of a file, fewer when it is shorter. Throws DataError that names the file. */
export async function firstBytes(file: string, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw fileProblem(error, 'read', file);
  });
  try {
    const { bytesRead } = await handle.read(bytes, 0, length, 0);
    return bytes.subarray(0, bytesRead);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  } finally {
    await handle.close();
  }
}

/** Bytes of a file. Throws DataError that names it. */
export async function fileSize(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    throw fileProblem(error, 'read', file);
  }
}

/** The parts one after the other in new memory, so that views of any width are aligned. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
