import { open } from 'node:fs/promises';
import { isUrl } from '../files/path-kinds.ts';
import { HttpFile } from '../http/http-file.ts';

/** An open file of the disk (Node's FileHandle is one) or of a web server that can be read at any place. */
export interface RandomAccess {
  stat(): Promise<{ readonly size: number }>;
  /** Fills `bytes[offset..offset + length)` from `position` on; fewer bytes than that only at the end. */
  read(bytes: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** Opens a path or an http(s) URL. Throws the error of the file system or the server. */
export function openRandomAccess(file: string): Promise<RandomAccess> {
  return isUrl(file) ? HttpFile.open(file) : open(file, 'r');
}
