import { testRandom } from '../ratings.ts';

interface Waiting {
  readonly queue: string;
  readonly inOrder: boolean;
  go(): void;
}

/**
 * Resumes waiting work in an order drawn from a seed; of a queue that is in order always the first. Nothing
 * depends on time.
 */
export class RandomTurns {
  readonly #random: () => number;
  readonly #waiting: Waiting[] = [];
  #pumping = false;

  constructor(seed: number) {
    this.#random = testRandom(seed + 1);
  }

  wait(queue: string, inOrder: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ queue, inOrder, go: resolve });
    this.#pump();
    return promise;
  }

  #pump(): void {
    if (this.#pumping || this.#waiting.length === 0) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      const able = this.#waiting.filter(
        (one, at) => !one.inOrder || this.#waiting.findIndex(({ queue }) => queue === one.queue) === at,
      );
      const chosen = able[Math.floor(this.#random() * able.length)];
      this.#waiting.splice(this.#waiting.indexOf(chosen), 1);
      chosen.go();
      this.#pump();
    });
  }
}
