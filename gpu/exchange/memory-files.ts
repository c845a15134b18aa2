import { randomUUID } from 'node:crypto';
import { closeSync, openSync, statfsSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { FileMemory } from '../../engine/partition.ts';
import type { FileMemories } from '../../engine/run/device.ts';
import { PIECE_BYTES } from '../webgpu/host.ts';

/** The folder whose files Linux keeps in memory. */
const FOLDER = '/dev/shm';

/** Number of files over which one FileMemory is spread: the system executes writes to one file one by one. */
const FILES = 8;

/** Share of the folder's free space that may be used. */
const SHARE = 0.5;

/**
 * Creates files in memory without names: the system deletes them when the process ends or they are closed.
 */
export class MemoryFiles implements FileMemories {
  readonly #open: number[] = [];
  readonly #folder: string;
  /** Bytes that may still be used, once known. */
  #room: number | undefined;

  constructor(folder = FOLDER) {
    this.#folder = folder;
  }

  make(bytes: number): FileMemory | undefined {
    this.#room ??= roomOf(this.#folder);
    if (bytes > this.#room) return undefined;
    const files: number[] = [];
    try {
      const count = Math.min(FILES, Math.ceil(bytes / PIECE_BYTES));
      while (files.length < count) files.push(unnamedFile(this.#folder));
    } catch {
      // The system has no such folder, or no free file descriptors: the caller uses an array instead.
      for (const file of files) closeSync(file);
      this.#room = 0;
      return undefined;
    }
    this.#room -= bytes;
    this.#open.push(...files);
    return { files, pieceBytes: PIECE_BYTES, bytes };
  }

  close(): void {
    for (const file of this.#open.splice(0)) closeSync(file);
    this.#room = undefined;
  }
}

function roomOf(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return SHARE * bavail * bsize;
  } catch {
    return 0;
  }
}

function unnamedFile(folder: string): number {
  // A random name: containers may share the folder and have the same process ids.
  const path = join(folder, `factorflow-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}
