import { RecordBatchReader, RecordBatchStreamWriter } from 'apache-arrow';
import { open } from 'node:fs/promises';
import { DataError } from '../../engine/errors.ts';
import { fileProblem, messageOf } from '../files/file-problem.ts';
import { KeptBytes } from './ipc-bytes.ts';
import type { IpcMessage } from './ipc-messages.ts';
import { verifyFooter, withoutDictionaries } from './verify-metadata.ts';

const MAGIC = 'ARROW1';
const END = 4 + MAGIC.length;

/**
 * The schema of an IPC file from its footer, as the message that a stream begins with: apache-arrow's own writer leaves
 * that message out of files. Throws DataError.
 */
export async function footerSchema(file: string): Promise<IpcMessage> {
  const broken = (summary: string, cause?: unknown) => new DataError(summary, { phase: 'read', file, cause, advice: 'Write or copy the file again' });
  const footer = await readFooter(file, broken);
  try {
    verifyFooter(footer);
    const length = Buffer.alloc(4);
    length.writeInt32LE(footer.length);
    const reader = RecordBatchReader.from(Buffer.concat([Buffer.from(`${MAGIC}\0\0`), withoutDictionaries(footer), length, Buffer.from(MAGIC)]));
    const { schema } = reader.open();
    const bytes = new KeptBytes();
    new RecordBatchStreamWriter().reset(bytes, schema);
    return { kind: 'schema', head: bytes.take(), body: new Uint8Array(0) };
  } catch (error) {
    throw broken(`the Arrow file's footer is damaged: ${messageOf(error)}`, error);
  }
}

async function readFooter(file: string, broken: (summary: string) => DataError): Promise<Uint8Array> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw fileProblem(error, 'read', file);
  });
  try {
    const { size } = await handle.stat();
    const end = Buffer.alloc(END);
    const { bytesRead } = await handle.read(end, 0, END, Math.max(0, size - END));
    if (bytesRead < END || end.toString('latin1', 4) !== MAGIC) throw broken('the Arrow file is cut off: its end is missing');
    const length = end.readInt32LE(0);
    if (length <= 0 || length > size - END) throw broken(`the Arrow file is damaged: a footer of ${length} bytes in a file of ${size}`);
    const footer = new Uint8Array(length);
    await handle.read(footer, 0, length, size - END - length);
    return footer;
  } finally {
    await handle.close();
  }
}
