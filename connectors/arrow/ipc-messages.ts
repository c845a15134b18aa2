import { Message, MessageHeader } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { messageOf } from '../files/file-problem.ts';
import { joinBytes } from '../files/stored-bytes.ts';
import { verifyMetadata } from './verify-metadata.ts';

/** A complete message of the stream, checked for its own bounds. */
export interface IpcMessage {
  readonly kind: 'schema' | 'dictionary' | 'batch';
  /** Continuation mark, length and metadata. */
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

const FILE_MAGIC = 'ARROW1';
const CONTINUATION = 0xffffffff;
const LARGEST = 2 ** 31 - 8;

/**
 * The messages of an IPC stream, or of a file, which is a stream between two marks with a footer behind it. `schemaOfFile` gives
 * the schema of files that have it in the footer alone. Memory is allocated only for bytes that have arrived.
 * Throws DataError that names the file and the batch when the data end early or are damaged.
 */
export async function* ipcMessages(chunks: AsyncGenerator<Uint8Array>, file: string, schemaOfFile: () => Promise<IpcMessage>): AsyncGenerator<IpcMessage> {
  try {
    const cursor = new ByteCursor(chunks);
    const isFile = latin1(await cursor.peek(6)) === FILE_MAGIC;
    if (isFile) await cursor.take(8);
    let batches = 0;
    for (let first = true; ; first = false) {
      const message = await nextMessage(cursor, file, isFile, first, batches);
      if (first && isFile && message?.kind !== 'schema') yield await schemaOfFile();
      if (message === undefined) return;
      yield message;
      if (message.kind === 'batch') batches++;
    }
  } finally {
    await chunks.return(undefined);
  }
}

/** The next message; undefined at the end. */
async function nextMessage(cursor: ByteCursor, file: string, isFile: boolean, first: boolean, batches: number): Promise<IpcMessage | undefined> {
  const place = first ? 'the schema' : `batch ${batches}`;
  const broken = (summary: string, advice?: string) => new DataError(`${place}: ${summary}`, { phase: 'read', file, advice });
  const cutOff = () => broken('the data end in its middle', 'Write or send them again');
  const prefix = await cursor.take(8);
  const view = new DataView(prefix.buffer);
  // A stream may end without a mark, a file may not.
  if (prefix.length === 0 && isFile) throw fileWithoutEnd(file, batches);
  if (prefix.length === 0 && first) throw new DataError('there are no Arrow data: 0 bytes', { phase: 'read', file });
  if (prefix.length === 0) return undefined;
  if (prefix.length >= 4 && view.getUint32(0, true) !== CONTINUATION) {
    throw first && !isFile ? new DataError('not Arrow IPC data of version 0.15 or newer', { phase: 'read', file }) : broken('it does not begin like a message: the data are damaged');
  }
  if (prefix.length < 8) throw cutOff();
  const length = view.getInt32(4, true);
  if (length === 0) {
    if (first && !isFile) throw new DataError('the Arrow data have no schema', { phase: 'read', file });
    if (isFile) await requireEndMark(cursor, file, batches);
    return undefined;
  }
  if (length < 0) throw broken('the data are damaged: a negative length');
  const metadata = await cursor.take(length);
  if (metadata.length < length) throw cutOff();
  const { kind, bodyLength } = decodeHead(metadata, broken);
  if (first && kind !== 'schema' && !isFile) throw broken('a batch comes before the schema');
  if (!first && kind === 'schema') throw broken('a second schema follows');
  const body = await cursor.take(bodyLength);
  if (body.length < bodyLength) throw cutOff();
  return { kind, head: joinBytes([prefix, metadata]), body };
}

function decodeHead(metadata: Uint8Array, broken: (summary: string, advice?: string) => DataError): { kind: IpcMessage['kind']; bodyLength: number } {
  try {
    verifyMetadata(metadata);
    const { headerType, bodyLength } = Message.decode(metadata);
    if (!(bodyLength >= 0 && bodyLength <= LARGEST)) throw new Error(`a body of ${bodyLength} bytes`);
    const kind = headerType === MessageHeader.Schema ? 'schema' : headerType === MessageHeader.DictionaryBatch ? 'dictionary' : 'batch';
    return { kind, bodyLength };
  } catch (error) {
    throw broken(`the metadata are damaged: ${messageOf(error)}`);
  }
}

/** Reads on to the end of the file, which must have its mark. */
async function requireEndMark(cursor: ByteCursor, file: string, batches: number): Promise<void> {
  let tail = new Uint8Array(0);
  for (let next = await cursor.take(1 << 16); next.length > 0; next = await cursor.take(1 << 16)) tail = joinBytes([tail, next]).slice(-FILE_MAGIC.length);
  if (latin1(tail) !== FILE_MAGIC) throw fileWithoutEnd(file, batches);
}

function fileWithoutEnd(file: string, batches: number): DataError {
  return new DataError(`the Arrow file is cut off after ${batches} ${batches === 1 ? 'batch' : 'batches'}: its end is missing`, { phase: 'read', file, advice: 'Write or copy it again' });
}

/** Takes bytes off a stream of chunks. */
class ByteCursor {
  readonly #chunks: AsyncGenerator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(chunks: AsyncGenerator<Uint8Array>) {
    this.#chunks = chunks;
  }

  /** The next `length` bytes in memory of their own, or fewer when the stream ends. */
  async take(length: number): Promise<Uint8Array<ArrayBuffer>> {
    const parts: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done) break;
        this.#rest = next.value;
        continue;
      }
      const part = this.#rest.subarray(0, missing);
      parts.push(part);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
    }
    return joinBytes(parts);
  }

  async peek(length: number): Promise<Uint8Array> {
    const bytes = await this.take(length);
    this.#rest = joinBytes([bytes, this.#rest]);
    return bytes;
  }
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
