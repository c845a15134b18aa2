import { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { isDiskFull } from '../../connectors/output/new-file.ts';
import { UsageError, FactorFlowError } from '../../engine/errors.ts';
import type { ProgressEvent } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { explain } from '../../engine/plan/explain.ts';

/** The connection between a worker and its parent process: bytes in, frames out. */
export interface ParentLink {
  /**
   * The bytes of stdin. Stdin stays open as long as the parent runs, so its end means that the parent has
   * ended.
   */
  readonly input: AsyncGenerator<Uint8Array>;
  /** Frees the memory of a chunk of `input` that is no longer used, before garbage collection does. */
  free?(chunk: Uint8Array): void;
  /** Sends a frame; resolves once it is written, and rejects if the parent does not read. */
  send(header: JsonObject, payload?: Uint8Array): Promise<void>;
}

/** Minimum milliseconds between frames of progress. */
const PROGRESS = 250;

/**
 * The parent of one run: incoming bytes, outgoing frames, and a signal that fires when the parent has ended.
 */
export class Parent {
  readonly cursor: ByteCursor;
  readonly #link: ParentLink;
  readonly #gone = new AbortController();
  #reported = 0;
  #violation: UsageError | undefined;

  constructor(link: ParentLink) {
    this.#link = link;
    this.cursor = new ByteCursor(link.input, (chunk) => link.free?.(chunk));
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** An error if the parent sent bytes when the protocol allows none. */
  get violation(): UsageError | undefined {
    return this.#violation;
  }

  async send(header: JsonObject, payload?: Uint8Array): Promise<void> {
    try {
      await this.#link.send(header, payload);
    } catch (cause) {
      this.#gone.abort(cause);
    }
  }

  /**
   * Called after the last expected byte: from now on bytes are a violation, and the end of stdin means that
   * the parent has ended.
   */
  watch(): void {
    const look = async () => {
      const more = await this.cursor.some(1);
      if (more !== undefined)
        this.#violation = new UsageError('bytes arrived after the trailer', {
          phase: 'read',
          advice: 'Keep stdin open, and send nothing more',
        });
      this.#gone.abort(new Error(more === undefined ? 'stdin has ended' : 'bytes arrived after the trailer'));
    };
    void look().catch((error: unknown) => this.#gone.abort(error));
  }

  /**
   * Called while a request is answered: the end of stdin means that the parent has ended. Resolves once the
   * next request begins, which must not be read before.
   */
  async lookAhead(): Promise<void> {
    const next = await this.cursor.peek(1).catch((error: unknown) => void this.#gone.abort(error));
    if (next?.length === 0) this.#gone.abort(new Error('stdin has ended'));
  }

  /** Sends an event to the parent as a frame; progress at most a few times a second. */
  readonly onEvent = (event: ProgressEvent): void => {
    const frame = this.#frameOf(event);
    if (frame !== undefined) void this.send(frame);
  };

  #frameOf(event: ProgressEvent): JsonObject | undefined {
    if (event.type === 'plan')
      return { type: 'plan', text: explain(event.plan), plan: { ...event.plan } as unknown as JsonObject };
    if (event.type === 'phase-end')
      return {
        type: 'progress',
        phase: event.phase,
        done: event.done,
        unit: event.unit,
        seconds: event.seconds,
      };
    if (event.type === 'phase-start')
      return { type: 'progress', phase: event.phase, done: 0, total: event.total, unit: event.unit };
    if (event.type !== 'phase-progress') return { ...event };
    const now = performance.now();
    if (now - this.#reported < PROGRESS) return undefined;
    this.#reported = now;
    return { type: 'progress', phase: event.phase, done: event.done, total: event.total, unit: event.unit };
  }
}

/** True if the disk of this host is the reason: the same work can succeed on another one. */
export function isHostError(error: unknown): boolean {
  if (!(error instanceof FactorFlowError)) return false;
  return isDiskFull(error) || error.details.phase === 'spill' || error.summary.startsWith('spillDir ');
}
