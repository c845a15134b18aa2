import type { RecordBatch } from 'apache-arrow';
import type { FileStamp } from '../../engine/stream/split.ts';
import type { DatasetFile } from './dataset-path.ts';
import { isFresh, type ReadingRun, stampOfRun } from './file-stamp.ts';

/** A file of a data set, and its version when it was opened. */
export interface OpenedFile {
  readonly file: DatasetFile;
  readonly stamp: FileStamp | undefined;
}

/** Opens the files of a source once for the source and its copies, and again when they have changed. */
export class Opening<Opened extends { readonly files: readonly OpenedFile[] }> {
  readonly #open: () => Promise<Opened>;
  #opened: Promise<Opened> | undefined;
  #latest: Opened | undefined;

  constructor(open: () => Promise<Opened>) {
    this.#open = open;
  }

  /** The files as they were opened last; undefined before that. */
  get latest(): Opened | undefined {
    return this.#latest;
  }

  /** Opens the files at the first call. A failure is not kept: the next call opens them again. */
  get(): Promise<Opened> {
    if (this.#opened === undefined) {
      const opened = this.#open();
      this.#opened = opened;
      opened.then(
        (files) => (this.#latest = files),
        () => this.forget(),
      );
    }
    return this.#opened;
  }

  /**
   * The files, as one pass of a run reads them. If other files have replaced them (see isFresh), they are
   * opened again. Throws DataError if their bytes have changed; the next call then opens them again.
   */
  async of(run: ReadingRun): Promise<Opened> {
    try {
      let opened = await this.get();
      const fresh = opened.files.map(({ file, stamp }) => isFresh(run, { file: file.file, stamp }));
      if (fresh.includes(false)) {
        this.forget();
        opened = await this.get();
      }
      return {
        ...opened,
        files: opened.files.map((one) => ({ ...one, stamp: stampOfRun(run, one.file.file, one.stamp) })),
      };
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Passes on the rows of one pass. After an error, the next pass opens the files again. */
  async *reading(rows: AsyncGenerator<RecordBatch>): AsyncGenerator<RecordBatch> {
    try {
      yield* rows;
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Runs a check of the files that were read. If it throws, the next pass opens the files again. */
  check(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** The next call opens the files again. */
  forget(): void {
    this.#opened = undefined;
  }
}
