import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpError } from './http-error.ts';
import type { ServedModels } from './loaded-model.ts';
import { readId } from './read-id.ts';
import { readObject, type Route } from './route.ts';

export interface ServerLimits {
  /** Most requests to the model at a time. */
  readonly mostRequests: number;
  readonly bodyBytes: number;
  readonly answerMilliseconds: number;
  /** Time for a client to send a whole request. */
  readonly receiveMilliseconds: number;
}

/** The requests to the model that are being answered. */
export class Requests {
  readonly #models: ServedModels;
  readonly #transfers: Transfers;
  readonly #limits: ServerLimits;
  #running = 0;

  constructor(models: ServedModels, transfers: Transfers, limits: ServerLimits) {
    [this.#models, this.#transfers, this.#limits] = [models, transfers, limits];
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Answers a request by its route. The request takes a place from its whole body to its answer, so clients
   * that send or read slowly take none. Throws HttpError BUSY if all places are taken.
   */
  async answer(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { mostRequests, answerMilliseconds, receiveMilliseconds } = this.#limits;
    if (this.#running >= mostRequests)
      throw new HttpError('BUSY', `the server answers ${mostRequests} requests already`);
    const input = {
      path: Object.fromEntries(
        Object.entries(request.params as Record<string, string>).map(([name, id]) => [
          name,
          readId(id, name),
        ]),
      ),
      query: readObject(route.query, request.query, 'query'),
      body: route.method === 'POST' ? readObject(route.body, request.body, 'body') : {},
    };
    const deadline = new Deadline(answerMilliseconds);
    reply.raw.once('close', () => deadline.abandon());
    this.#running++;
    const work = this.#models
      .use(async (loaded) => {
        void reply.header('x-factorflow-model', loaded.version);
        return route.respond({ ...input, signal: deadline.signal }, loaded, this.#models);
      })
      .finally(() => this.#running--);
    const answer = JSON.stringify(await deadline.within(work));
    this.#transfers.hold(reply.raw, Buffer.byteLength(answer));
    const late = setTimeout(() => reply.raw.destroy(), receiveMilliseconds);
    reply.raw.once('close', () => clearTimeout(late));
    return reply.type('application/json; charset=utf-8').send(answer);
  }
}

/**
 * The time limit of one request. Its signal fires when the time is over, the work has failed or the client
 * has gone.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #over: Promise<never>;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(milliseconds: number) {
    this.#over = new Promise((_, reject) => {
      this.#timer = setTimeout(() => {
        reject(new HttpError('TIMEOUT', `the answer took more than ${milliseconds / 1000} seconds`));
        this.#controller.abort();
      }, milliseconds);
    });
    this.#over.catch(() => {});
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * The result of work, or HttpError TIMEOUT if it takes too long. A failure cancels parts that still run.
   */
  async within<T>(work: Promise<T>): Promise<T> {
    try {
      return await Promise.race([work, this.#over]);
    } catch (error) {
      this.#controller.abort();
      throw error;
    } finally {
      this.#ended = true;
      clearTimeout(this.#timer);
    }
  }

  /** Cancels the work, since the client has closed its connection. */
  abandon(): void {
    if (this.#ended) return;
    clearTimeout(this.#timer);
    this.#controller.abort();
  }
}

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
