import { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { UsageError } from '../../engine/errors.ts';
import type { ProgressEvent } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import { explain } from '../../engine/plan/explain.ts';

/** Both ways between a worker and its parent process. */
export interface ParentLink {
  /** The bytes of stdin to their end, which is the end of the parent. */
  readonly input: AsyncGenerator<Uint8Array>;
  /** Sends a frame; resolves once it has left, and rejects when the parent does not read. */
  send(header: JsonObject, payload?: Uint8Array): Promise<void>;
}

/** Milliseconds between two frames of progress. */
const PROGRESS = 250;

/**
 * The parent as one run sees it: bytes that come, frames that go, and a signal that fires when the parent has
 * gone.
 */
export class Parent {
  readonly cursor: ByteCursor;
  readonly #link: ParentLink;
  readonly #gone = new AbortController();
  #told = 0;
  #violation: UsageError | undefined;

  constructor(link: ParentLink) {
    this.#link = link;
    this.cursor = new ByteCursor(link.input);
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** The fault of a parent that sent what no parent may send now. */
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

  /** From now on nothing may come: the end of stdin is the end of the parent. */
  watch(): void {
    const look = async () => {
      const more = await this.cursor.some(1);
      if (more !== undefined)
        this.#violation = new UsageError('bytes came behind the trailer', {
          phase: 'read',
          advice: 'Keep stdin open, and send nothing more',
        });
      this.#gone.abort(new Error(more === undefined ? 'stdin has ended' : 'bytes came behind the trailer'));
    };
    void look().catch((error: unknown) => this.#gone.abort(error));
  }

  /** Passes an event on as a frame, at most a few of progress a second. */
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
    if (now - this.#told < PROGRESS) return undefined;
    this.#told = now;
    return { type: 'progress', phase: event.phase, done: event.done, total: event.total, unit: event.unit };
  }
}
