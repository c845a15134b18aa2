import type { Server } from 'node:http';
import { setImmediate as polled, setTimeout as pause } from 'node:timers/promises';

/** Time without a new connection or request after which all that was sent has been read. */
const QUIET_MILLISECONDS = 50;

/** Connections and requests that arrive at a server. */
export class Traffic {
  #arrived = 0;
  #open = 0;

  constructor(server: Server) {
    server.on('connection', () => this.#arrived++);
    server.on('request', (_, response) => {
      this.#arrived++;
      this.#open++;
      response.once('close', () => this.#open--);
    });
  }

  /**
   * Waits until nothing arrives and all requests are answered, at most for a time. The time is counted in
   * pauses, so that a thread that is kept from its sockets has more of it.
   */
  async ends(milliseconds: number): Promise<void> {
    let before: number | undefined;
    for (let left = milliseconds; left > 0 && (before !== this.#arrived || this.#open > 0);) {
      before = this.#arrived;
      await pause(Math.min(left, QUIET_MILLISECONDS));
      left -= QUIET_MILLISECONDS;
      // Timers run before sockets are read, so a busy thread has not seen yet what has arrived.
      await polled();
    }
  }
}
