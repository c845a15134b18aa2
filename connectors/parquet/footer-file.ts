import { closeReader } from '../../engine/regular-file.ts';
import { DataError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { fileProblem } from '../files/file-problem.ts';
import { decodeFooter, FooterProblem } from './footer.ts';
import type { Footer } from './footer.ts';
import { openRandomAccess } from './random-access.ts';
import type { RandomAccess } from './random-access.ts';

/** Most bytes of a footer, far more than writers make: its length in a damaged file can be up to 4 GiB. */
const FOOTER_BYTES = 2 ** 30;

/** A larger footer is not kept. */
const KEPT_BYTES = 1 << 22;

/**
 * The last footer of this thread, whose tasks read one row group of a file after another. To decode it for
 * each of them takes quadratic time.
 */
let last: { readonly bytes: Uint8Array; readonly footer: Footer } | undefined;

/** Decodes a footer, or returns the last one if it has the same bytes in a file of the same size. */
function decodedFooter(bytes: Uint8Array, size: number): Footer {
  if (last?.footer.fileBytes === size && Buffer.compare(last.bytes, bytes) === 0) return last.footer;
  const footer = decodeFooter(bytes, size);
  last = bytes.length <= KEPT_BYTES ? { bytes, footer } : undefined;
  return footer;
}

/**
 * Reads and checks a file's footer, without reading data: magic bytes, lengths, encryption, and that every
 * column chunk is inside the file. Throws DataError that names the file.
 */
export async function readFooter(file: string): Promise<Footer> {
  let handle: RandomAccess | undefined;
  try {
    handle = await openRandomAccess(file);
    return await readFooterOf(handle, file);
  } catch (error) {
    throw fileProblem(error, 'read', file);
  } finally {
    await closeReader(handle);
  }
}

/** Reads and checks the footer of an open file. */
export async function readFooterOf(handle: RandomAccess, file: string): Promise<Footer> {
  const broken = (summary: string, advice?: string) =>
    new DataError(summary, { phase: 'read', file, advice });
  const { size } = await handle.stat();
  if (size === 0) throw broken('the file is empty (0 bytes), not even a Parquet footer');
  if (size < 12) throw broken(`not a Parquet file: ${size} bytes, need 12 at least`);
  const tail = await readExactly(handle, file, size - 8, 8);
  const magic = Buffer.from(tail.buffer, tail.byteOffset + 4, 4).toString('latin1');
  if (magic === 'PARE') throw broken('the file is encrypted, which is not supported', 'Decrypt it first');
  if (magic !== 'PAR1') {
    const start = await readExactly(handle, file, 0, 4);
    if (Buffer.from(start).toString('latin1') === 'PAR1')
      throw broken(
        'the Parquet file is cut off: it starts well, but its footer is missing',
        'Write or copy it again',
      );
    throw broken('not a Parquet file: it does not end with "PAR1"');
  }
  const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true);
  if (length > size - 12)
    throw broken(`the Parquet file is damaged: a footer of ${length} bytes in a file of ${size}`);
  if (length > FOOTER_BYTES)
    throw broken(
      `a footer of ${formatBytes(length)} is too large: ${formatBytes(FOOTER_BYTES)} are allowed`,
      'Write the file again, with larger row groups or in several files',
    );
  const bytes = await readExactly(handle, file, size - 8 - length, length + 8);
  try {
    return decodedFooter(bytes, size);
  } catch (error) {
    if (error instanceof FooterProblem) throw broken(error.message, error.advice);
    throw error;
  }
}

/** Reads `length` bytes from `position`. Throws DataError if the file ends before. */
export async function readExactly(
  handle: RandomAccess,
  file: string,
  position: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  await readInto(handle, file, bytes, position);
  return bytes;
}

/** Fills `bytes` from `position` on. Throws DataError if the file ends before. */
export async function readInto(
  handle: RandomAccess,
  file: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await handle
      .read(bytes, done, bytes.length - done, position + done)
      .catch((error: unknown) => {
        throw fileProblem(error, 'read', file);
      });
    if (bytesRead === 0)
      throw new DataError('the file became shorter while it was read', { phase: 'read', file });
    done += bytesRead;
  }
}
