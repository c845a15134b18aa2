import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { fileProblem } from '../../connectors/files/file-problem.ts';
import { type AtomicOutput, atomicOutput } from '../../connectors/output/atomic-output.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { openRegular } from '../../engine/regular-file.ts';
import { TRACE_HEAD, TraceText } from '../../engine/trace/trace-text.ts';
import type { Tracer } from '../../engine/trace/trace.ts';

/** Number of characters that are collected before a write. */
const PIECE = 1 << 18;

/**
 * A file with the spans of a session's work, in Chrome's trace format, for Perfetto or chrome://tracing: a
 * timeline for each place (host, files, spill, cpu, gpu:0, ...) with a row for each of its threads and kinds
 * of work. It is written during the work, has at most a million spans, reports the number of spans left out
 * by place in `otherData.dropped`, and appears at `close`.
 */
export class Trace {
  /** @internal */
  readonly tracer: Tracer;
  readonly #path: string;
  readonly #output: AtomicOutput;
  readonly #text: TraceText;
  readonly #handle: number;
  #waiting: string[] = [];
  #length = 0;
  #failure: unknown;

  private constructor(path: string, output: AtomicOutput) {
    [this.#path, this.#output] = [path, output];
    this.#handle = openSync(output.temporary, 'wx');
    this.#text = new TraceText((text) => this.#take(text));
    this.tracer = this.#text;
  }

  /**
   * Replaces an earlier trace. Throws UsageError if the path has any other file, and DataError if nothing can
   * be written.
   */
  static async open(path: string): Promise<Trace> {
    if (typeof path !== 'string' || path === '' || path === '-')
      throw new UsageError(`a trace must be written to a file, got ${shown(path)}`, {
        advice: 'Name one, such as trace.json',
      });
    const output = await atomicOutput(path, {
      kind: 'file',
      overwrite: isTrace(path),
      recognizes: () => false,
    });
    try {
      return new Trace(path, output);
    } catch (error) {
      throw await output.fail(error);
    }
  }

  /**
   * Completes the file, which appears now. `about`: facts for the reader, such as the command. Throws
   * CapacityError if the disk was full.
   */
  async close(about: JsonObject = {}): Promise<void> {
    this.#text.end(about);
    this.#flush();
    closeSync(this.#handle);
    if (this.#failure !== undefined)
      throw await this.#output.fail(fileProblem(this.#failure, 'write', this.#path));
    await this.#output.commit();
  }

  #take(text: string): void {
    if (this.#failure !== undefined) return;
    this.#waiting.push(text);
    this.#length += text.length;
    if (this.#length >= PIECE) this.#flush();
  }

  /**
   * Writes synchronously; that is fast, since the system caches the data. A failure is reported by `close`.
   */
  #flush(): void {
    const bytes = Buffer.from(this.#waiting.join(''));
    [this.#waiting, this.#length] = [[], 0];
    try {
      for (let written = 0; written < bytes.length;) written += writeSync(this.#handle, bytes, written);
    } catch (error) {
      this.#failure ??= error;
    }
  }
}

/** True for a file that starts like a trace. */
function isTrace(path: string): boolean {
  try {
    const { fd } = openRegular(path);
    const head = Buffer.alloc(TRACE_HEAD.length);
    readSync(fd, head);
    closeSync(fd);
    return head.toString() === TRACE_HEAD;
  } catch {
    return false;
  }
}
