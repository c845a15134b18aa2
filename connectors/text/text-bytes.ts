import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DataError } from '../../engine/errors.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { inputName } from '../files/path-kinds.ts';
import { storedBytes } from '../files/stored-bytes.ts';

/** Bytes of a file or of stdin, uncompressed when they begin like gzip (the ending does not matter). Members that follow each other are joined. */
export async function* textBytes(file: string): AsyncGenerator<Uint8Array> {
  const stored = await withHead(storedBytes(file), 2);
  if (stored.head[0] !== 0x1f || stored.head[1] !== 0x8b) {
    yield* stored.all;
    return;
  }
  const source = Readable.from(stored.all, { objectMode: false, highWaterMark: 1 << 20 });
  const gunzip = createGunzip({ chunkSize: 1 << 18 });
  source.on('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (error) {
    if (errorCode(error)?.startsWith('Z_')) {
      const cut = errorCode(error) === 'Z_BUF_ERROR';
      throw new DataError(`the gzip data are ${cut ? 'cut off' : 'damaged'}`, { phase: 'read', file: inputName(file), cause: error, advice: 'Write or copy the file again' });
    }
    throw fileProblem(error, 'read', inputName(file));
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

/** The first bytes of a stream (fewer when it is shorter), and the whole stream. */
async function withHead(chunks: AsyncGenerator<Uint8Array>, bytes: number): Promise<{ head: Uint8Array; all: AsyncGenerator<Uint8Array> }> {
  const first: Uint8Array[] = [];
  let length = 0;
  let next = await chunks.next();
  while (!next.done) {
    first.push(next.value);
    length += next.value.length;
    if (length >= bytes) break;
    next = await chunks.next();
  }
  async function* all() {
    try {
      yield* first;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  }
  return { head: first.length === 1 ? first[0] : Buffer.concat(first), all: all() };
}
