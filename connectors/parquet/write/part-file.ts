import type { FileHandle } from 'node:fs/promises';
import { fileProblem } from '../../files/file-problem.ts';
import { appendAll, createFile } from '../../output/new-file.ts';
import { FileAssembly } from './file-assembly.ts';

/** A Parquet file assembled from encoded row groups. End it with `close` or `abort`. */
export class PartFile {
  bytes = 0;
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #assembly = new FileAssembly();

  private constructor(file: string, handle: FileHandle) {
    [this.#file, this.#handle] = [file, handle];
  }

  static async create(file: string): Promise<PartFile> {
    return new PartFile(file, await createFile(file));
  }

  /** Appends a row group, encoded by `encodeRowGroup`. */
  async append(group: Uint8Array): Promise<void> {
    await this.#write(this.#assembly.add(group));
  }

  async close(): Promise<void> {
    await this.#write(this.#assembly.end());
    await this.#handle.close();
  }

  async abort(): Promise<void> {
    await this.#handle.close();
  }

  async #write(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      this.bytes += await appendAll(this.#handle, pieces);
    } catch (error) {
      throw fileProblem(error, 'write', this.#file);
    }
  }
}
