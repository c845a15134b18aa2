import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Sink } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { fileKinds, type FileKind, hasExtension } from '../files/format-names.ts';

export interface WriteSummary {
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
}

/**
 * The parts of the execution context that a sink uses. Without `executor`, the calling thread encodes the
 * rows.
 */
export type WritingContext = Pick<ExecutionContext, 'signal' | 'events'> &
  Partial<Pick<ExecutionContext, 'executor' | 'metrics'>>;

/** A sink of files. */
export interface CheckedSink extends Sink<WriteSummary> {
  /** Throws UsageError when the output may not be written, before any work is done. */
  check(): Promise<void>;
}

/** Writes the files of one format. */
export interface FilesOfFolders {
  readonly name: string;
  /** Extension of its files, such as ".parquet". */
  readonly extension: string;
  /** True for a file name that an output of this format may have. */
  isFile(name: string): boolean;
  /** Writes rows as the files `file(0)`, `file(1)`, ... */
  write(
    file: (part: number) => string,
    rows: BatchStream,
    ctx: WritingContext,
  ): Promise<Pick<WriteSummary, 'bytes' | 'files'>>;
}

/**
 * The files of a format whose sink writes one file. Throws the sink's UsageError for options that cannot be
 * used.
 */
export function sinkFiles(
  kind: FileKind,
  extension: string,
  sinkOf: (file: string) => { consume(rows: BatchStream, ctx: WritingContext): Promise<WriteSummary> },
): FilesOfFolders {
  void sinkOf(`part${extension}`);
  const [, name] = extension.split('.');
  return {
    name,
    extension,
    isFile: (file) => hasExtension(file, fileKinds[kind].extensions),
    write: (file, rows, ctx) => sinkOf(file(0)).consume(rows, ctx),
  };
}
