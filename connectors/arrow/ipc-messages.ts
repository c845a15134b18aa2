import * as zlib from 'node:zlib';
import { compressionRegistry, CompressionType, Message, MessageHeader } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { ByteCursor } from '../compression/byte-cursor.ts';
import { hasZstd } from '../compression/compressions.ts';
import { packLz4Bytes, unpackLz4Bytes } from '../compression/lz4-frame.ts';
import { messageOf } from '../files/file-problem.ts';
import { joinBytes } from '../files/stored-bytes.ts';
import type { StoredColumns } from './unread-columns.ts';
import { verifyMetadata } from './verify-metadata.ts';

/** A complete message of the stream, with checked bounds. */
export interface IpcMessage {
  readonly kind: 'schema' | 'dictionary' | 'batch';
  /** Continuation mark, length and metadata. */
  readonly head: Uint8Array;
  readonly body: Uint8Array;
  /** Of a schema whose columns were removed already. */
  readonly columns?: StoredColumns;
}

/** First and last bytes of an IPC file. */
export const FILE_MAGIC = 'ARROW1';
const CONTINUATION = 0xffffffff;
const LARGEST = 2 ** 31 - 8;

/**
 * Yields the messages of an IPC stream. A file that comes through a pipe is read, too: it is a stream between
 * two marks, followed by a footer. Memory is allocated only for bytes that have arrived. Throws DataError
 * that names the input and the batch when the data end early or are damaged. With `needsMark`, input that
 * ends without the stream's end mark is an error, since the writing program may have failed.
 */
export async function* ipcMessages(
  chunks: AsyncGenerator<Uint8Array>,
  file: string,
  needsMark: boolean,
): AsyncGenerator<IpcMessage> {
  try {
    yield* messagesAt(new ByteCursor(chunks), file, needsMark);
  } finally {
    await chunks.return(undefined);
  }
}

/**
 * Yields messages like ipcMessages, starting at the cursor's position. When it ends, the cursor is after the
 * end mark.
 */
export async function* messagesAt(
  cursor: ByteCursor,
  file: string,
  needsMark: boolean,
): AsyncGenerator<IpcMessage> {
  const isFile = latin1(await cursor.peek(6)) === FILE_MAGIC;
  if (isFile) await cursor.take(8);
  let batches = 0;
  for (let first = true; ; first = false) {
    const message = await nextMessage(cursor, {
      file,
      isFile,
      needsMark: needsMark || isFile,
      first,
      batches,
    });
    if (message === undefined) return;
    yield message;
    if (message.kind === 'batch') batches++;
  }
}

interface Position {
  readonly file: string;
  readonly isFile: boolean;
  readonly needsMark: boolean;
  readonly first: boolean;
  readonly batches: number;
}

/** The next message; undefined at the end. */
async function nextMessage(cursor: ByteCursor, position: Position): Promise<IpcMessage | undefined> {
  const prefix = await cursor.take(8);
  if (prefix.length === 0) return requireNoEndMark(position);
  const length = metadataLength(prefix, position);
  if (length === 0) return passEndMark(cursor, position);
  const metadata = await takeWhole(cursor, length, position);
  const { kind, bodyLength } = decodeHead(metadata, (summary) => broken(position, summary));
  checkOrder(kind, position);
  const body = await takeWhole(cursor, bodyLength, position);
  return { kind, head: joinBytes([prefix, metadata]), body };
}

/**
 * Called if the input ends where the next message would start. Throws if no schema has arrived, or if an end
 * mark is required.
 */
function requireNoEndMark({ file, isFile, needsMark, first, batches }: Position): undefined {
  if (first && !isFile) throw new DataError('there are no Arrow data: 0 bytes', { phase: 'read', file });
  if (needsMark) throw withoutEnd(file, batches, isFile);
  return undefined;
}

/** Length of the metadata, from the first bytes of a message; 0 in an end mark. */
function metadataLength(prefix: Uint8Array, position: Position): number {
  const { file, isFile, first } = position;
  const view = new DataView(prefix.buffer);
  if (prefix.length >= 4 && view.getUint32(0, true) !== CONTINUATION) {
    if (!first) throw broken(position, 'it does not begin like a message: the data are damaged');
    if (isFile) throw unordered(file);
    throw new DataError('not Arrow IPC data of version 0.15 or newer', { phase: 'read', file });
  }
  if (prefix.length < 8) throw cutOff(position);
  const length = view.getInt32(4, true);
  if (length < 0) throw broken(position, 'the data are damaged: a negative length');
  return length;
}

/** Continues after an end mark: a file has a footer there, a stream may be followed by another stream. */
async function passEndMark(
  cursor: ByteCursor,
  { file, isFile, first, batches }: Position,
): Promise<undefined> {
  if (first && isFile) throw unordered(file);
  if (first) throw new DataError('the Arrow data have no schema', { phase: 'read', file });
  if (isFile) await requireEndMark(cursor, file, batches);
}

/** Throws unless the schema is the first message, and the only schema. */
function checkOrder(kind: IpcMessage['kind'], position: Position): void {
  const { file, isFile, first } = position;
  if (first === (kind === 'schema')) return;
  if (!first) throw broken(position, 'a second schema follows');
  throw isFile ? unordered(file) : broken(position, 'a batch comes before the schema');
}

async function takeWhole(cursor: ByteCursor, length: number, position: Position): Promise<Uint8Array> {
  const bytes = await cursor.take(length);
  if (bytes.length < length) throw cutOff(position);
  return bytes;
}

function broken({ file, first, batches }: Position, summary: string, advice?: string): DataError {
  const place = first ? 'the schema' : `batch ${batches}`;
  return new DataError(`${place}: ${summary}`, { phase: 'read', file, advice });
}

function cutOff(position: Position): DataError {
  return broken(position, 'the data end in its middle', 'Write or send them again');
}

/** Error for a file whose messages can be found only by the footer at its end. */
function unordered(file: string): DataError {
  return new DataError(
    'this Arrow file begins with no schema, so it can be read only by the footer at its end, and not ' +
      'from a pipe',
    { phase: 'read', file, advice: 'Name the file, or send the stream format' },
  );
}

/** Kind, rows and body length from a message's metadata, after checking it. `broken` makes the error. */
export function decodeHead(
  metadata: Uint8Array,
  broken: (summary: string) => DataError,
): { kind: IpcMessage['kind']; bodyLength: number; rows: number } {
  try {
    verifyMetadata(metadata);
    const message = Message.decode(metadata);
    const { headerType, bodyLength } = message;
    if (!(bodyLength >= 0 && bodyLength <= LARGEST)) throw new Error(`a body of ${bodyLength} bytes`);
    requireViews(message);
    const kind =
      headerType === MessageHeader.Schema
        ? 'schema'
        : headerType === MessageHeader.DictionaryBatch
          ? 'dictionary'
          : 'batch';
    return { kind, bodyLength, rows: message.isRecordBatch() ? message.header().length : 0 };
  } catch (error) {
    throw broken(`the metadata are damaged: ${messageOf(error)}`);
  }
}

/** Throws an Error if the columns of texts in views have more buffers than the batch. */
function requireViews(message: Message): void {
  if (!message.isDictionaryBatch() && !message.isRecordBatch()) return;
  const rows = message.isDictionaryBatch() ? message.header().data : message.header();
  const views = rows.variadicBufferCounts.reduce((sum, count) => sum + count, 0);
  if (views > rows.buffers.length)
    throw new Error(`${views} buffers of texts, and ${rows.buffers.length} are there`);
}

/** Skips to the end of the file and checks its end mark. */
async function requireEndMark(cursor: ByteCursor, file: string, batches: number): Promise<void> {
  let tail = new Uint8Array(0);
  for (let next = await cursor.take(1 << 16); next.length > 0; next = await cursor.take(1 << 16))
    tail = joinBytes([tail, next]).slice(-FILE_MAGIC.length);
  if (latin1(tail) !== FILE_MAGIC) throw withoutEnd(file, batches, true);
}

function withoutEnd(file: string, batches: number, isFile: boolean): DataError {
  const what = isFile ? 'the Arrow file' : 'the Arrow stream';
  return new DataError(
    `${what} is cut off after ${batches} ${batches === 1 ? 'batch' : 'batches'}: its end ` +
      `${isFile ? 'is missing' : 'mark is missing'}`,
    { phase: 'read', file, advice: `Write or ${isFile ? 'copy' : 'send'} it again` },
  );
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** Compressions of the buffers in record batches. */
export const arrowCodecs = ['uncompressed', 'lz4', 'zstd'] as const;
export type ArrowCodec = (typeof arrowCodecs)[number];

/** Largest size of an uncompressed buffer. A larger size is treated as damage. */
const LARGEST_BUFFER = 2 ** 29;

/** Registers lz4 and zstd with apache-arrow, unless the program has registered codecs of its own. */
export function registerCodecs(): void {
  if (compressionRegistry.get(CompressionType.LZ4_FRAME) === null) {
    compressionRegistry.set(CompressionType.LZ4_FRAME, {
      decode: (bytes) => unpackLz4Bytes(bytes, LARGEST_BUFFER),
      encode: packLz4Bytes,
    });
  }
  if (compressionRegistry.get(CompressionType.ZSTD) !== null || !hasZstd()) return;
  compressionRegistry.set(CompressionType.ZSTD, {
    decode: (bytes) => zlib.zstdDecompressSync(bytes, { maxOutputLength: LARGEST_BUFFER }),
    encode: (bytes) => zlib.zstdCompressSync(bytes),
  });
}

/** Options of apache-arrow's writers for a codec. */
export function writerOptions(codec: ArrowCodec): { readonly compressionType?: CompressionType } {
  if (codec === 'uncompressed') return {};
  registerCodecs();
  return { compressionType: codec === 'lz4' ? CompressionType.LZ4_FRAME : CompressionType.ZSTD };
}
