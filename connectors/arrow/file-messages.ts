import { RecordBatchReader, RecordBatchStreamWriter } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { closeReader } from '../../engine/regular-file.ts';
import { KeptBytes } from '../../engine/stream/ipc-bytes.ts';
import { messageOf } from '../files/file-problem.ts';
import { openRandomAccess, type RandomAccess, readExactly } from '../files/random-access.ts';
import type { UrlVersions } from '../http/request.ts';
import { decodeHead, FILE_MAGIC, type IpcMessage } from './ipc-messages.ts';
import { removeUnread } from './unread-columns.ts';
import { footerBlocks, verifyFooter, withoutDictionaries, type FooterBlock } from './verify-metadata.ts';

const END = 4 + FILE_MAGIC.length;

/**
 * A footer has at most this number of bytes, far more than writers make. In a damaged file its length could
 * claim up to 2 GiB.
 */
const FOOTER_BYTES = 2 ** 30;

/**
 * First bytes of a message since version 0.15; the length of its metadata follows. An older message starts
 * with that length.
 */
const CONTINUATION = 0xffffffff;

/** Batches `from` .. `to - 1` of a file. */
export interface BatchRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The messages of an IPC file, found by its footer. The beginning of a file is not reliable: apache-arrow's
 * writer leaves the schema out there, and Polars writes other bytes. Yields all dictionaries first, then the
 * given range of batches. Throws DataError that names the file and the batch.
 */
export async function* fileMessages(
  file: string,
  { from, to }: BatchRange,
  versions?: UrlVersions,
): AsyncGenerator<IpcMessage> {
  const handle = await openRandomAccess(file, false, versions);
  try {
    const { size } = await handle.stat();
    const footer = await readFooter(handle, size, file);
    yield schemaMessage(footer, file);
    for (const [number, block] of footerBlocks(footer, 'dictionaries').entries())
      yield await readMessage(handle, block, size, 'dictionary', number, file);
    for (const [number, block] of footerBlocks(footer, 'batches').slice(from, to).entries())
      yield await readMessage(handle, block, size, 'batch', from + number, file);
    await handle.verify?.();
  } finally {
    await closeReader(handle);
  }
}

/** Sizes of a file's messages, in order; for batches also the number of rows. */
export async function messageSizes(file: string): Promise<{
  readonly dictionaries: readonly number[];
  readonly batches: readonly { readonly bytes: number; readonly rows: number }[];
}> {
  const handle = await openRandomAccess(file);
  try {
    const { size } = await handle.stat();
    const footer = await readFooter(handle, size, file);
    const batches: { bytes: number; rows: number }[] = [];
    for (const [number, block] of footerBlocks(footer, 'batches').entries()) {
      const { rows } = await readHead(handle, block, size, 'batch', number, file);
      batches.push({ bytes: block.headLength + block.bodyLength, rows });
    }
    return {
      dictionaries: footerBlocks(footer, 'dictionaries').map(({ bodyLength }) => bodyLength),
      batches,
    };
  } finally {
    await closeReader(handle);
  }
}

function fault(summary: string, file: string, cause?: unknown): DataError {
  return new DataError(summary, { phase: 'read', file, cause, advice: 'Write or copy the file again' });
}

async function readFooter(handle: RandomAccess, size: number, file: string): Promise<Uint8Array> {
  const end = Buffer.from(size < END ? '' : await readExactly(handle, file, size - END, END));
  if (end.length < END || end.toString('latin1', 4) !== FILE_MAGIC)
    throw fault('the Arrow file is cut off: its end is missing', file);
  const length = end.readInt32LE(0);
  if (length <= 0 || length > size - END)
    throw fault(`the Arrow file is damaged: a footer of ${length} bytes in a file of ${size}`, file);
  if (length > FOOTER_BYTES)
    throw fault(
      `a footer of ${formatBytes(length)} is too large: ${formatBytes(FOOTER_BYTES)} are allowed`,
      file,
    );
  const footer = await readExactly(handle, file, size - END - length, length);
  try {
    verifyFooter(footer);
  } catch (error) {
    throw fault(`the Arrow file's footer is damaged: ${messageOf(error)}`, file, error);
  }
  return footer;
}

/** The footer's schema, as the message that starts a stream. */
function schemaMessage(footer: Uint8Array, file: string): IpcMessage {
  try {
    const length = Buffer.alloc(4);
    length.writeInt32LE(footer.length);
    const whole = withoutDictionaries(footer);
    const columns = removeUnread(whole, 1);
    const { schema } = RecordBatchReader.from(
      Buffer.concat([Buffer.from(`${FILE_MAGIC}\0\0`), whole, length, Buffer.from(FILE_MAGIC)]),
    ).open();
    const bytes = new KeptBytes();
    new RecordBatchStreamWriter().reset(bytes, schema);
    return { kind: 'schema', head: bytes.take(), body: new Uint8Array(0), ...(columns && { columns }) };
  } catch (error) {
    throw fault(`the schema in the Arrow file's footer cannot be read: ${messageOf(error)}`, file, error);
  }
}

async function readMessage(
  handle: RandomAccess,
  block: FooterBlock,
  size: number,
  kind: IpcMessage['kind'],
  number: number,
  file: string,
): Promise<IpcMessage> {
  const { metadata, bodyLength } = await readHead(handle, block, size, kind, number, file);
  const body = await readExactly(handle, file, block.offset + block.headLength, bodyLength);
  const start = Buffer.alloc(8);
  start.writeUInt32LE(CONTINUATION);
  start.writeInt32LE(metadata.length, 4);
  return { kind, head: Buffer.concat([start, metadata]), body };
}

interface MessageHead {
  readonly metadata: Uint8Array;
  readonly bodyLength: number;
  readonly rows: number;
}

async function readHead(
  handle: RandomAccess,
  { offset, headLength, bodyLength }: FooterBlock,
  size: number,
  kind: IpcMessage['kind'],
  number: number,
  file: string,
): Promise<MessageHead> {
  const broken = (summary: string) => fault(`${kind} ${number}: ${summary}`, file);
  if (
    !(offset >= 8 && headLength >= 8 && bodyLength >= 0 && offset + headLength + bodyLength <= size - END)
  ) {
    throw broken(
      `it is at ${offset}, with ${headLength} + ${bodyLength} bytes in a file of ${size}: the footer is damaged`,
    );
  }
  const head = await readExactly(handle, file, offset, headLength);
  const view = new DataView(head.buffer);
  const prefix = view.getUint32(0, true) === CONTINUATION ? 8 : 4;
  const length = view.getInt32(prefix - 4, true);
  if (length <= 0 || length > headLength - prefix)
    throw broken('it does not begin like a message: the data are damaged');
  const metadata = head.slice(prefix, prefix + length);
  const decoded = decodeHead(metadata, broken);
  if (decoded.kind !== kind) throw broken(`a ${decoded.kind} is where the footer names a ${kind}`);
  if (decoded.bodyLength > bodyLength)
    throw broken(`its body has ${decoded.bodyLength} bytes, and the footer names ${bodyLength}`);
  return { metadata, bodyLength: decoded.bodyLength, rows: decoded.rows };
}
