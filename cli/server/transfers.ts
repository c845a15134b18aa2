import type { IncomingMessage, ServerResponse } from 'node:http';

type Message = IncomingMessage | ServerResponse;

/**
 * Memory of bodies that are not whole yet and of answers that clients have not taken yet. Beyond the limit,
 * the clients that have needed the longest time lose their connections, so slow ones make room for quick ones.
 */
export class Transfers {
  /** Bytes of each message, oldest first. */
  readonly #held = new Map<Message, number>();
  readonly #most: number;
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#most = mostBytes;
  }

  /** Counts bytes of a message until it is received or sent. */
  hold(message: Message, bytes: number): void {
    // Its connection has been closed, and 'close' comes no more.
    if (message.destroyed) return;
    const held = this.#held.get(message);
    if (held === undefined) message.once('close', () => this.#release(message));
    this.#held.set(message, (held ?? 0) + bytes);
    this.#bytes += bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#most || this.#held.size === 1) return;
      this.#release(oldest);
      oldest.destroy();
    }
  }

  #release(message: Message): void {
    this.#bytes -= this.#held.get(message) ?? 0;
    this.#held.delete(message);
  }
}
