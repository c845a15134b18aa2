import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { fileProblem } from '../files/file-problem.ts';

/** Creates a file for writing. Throws when it exists already, or cannot be made. */
export async function createFile(file: string): Promise<FileHandle> {
  return open(file, 'wx').catch((error: unknown) => {
    throw fileProblem(error, 'write', file);
  });
}

/** Appends all of the bytes. */
export async function appendBytes(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten;
}
