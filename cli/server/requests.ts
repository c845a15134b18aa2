import type { FastifyReply, FastifyRequest } from 'fastify';
import { Deadline } from './deadline.ts';
import { readFields, readId } from './fields.ts';
import { HttpError } from './http-error.ts';
import type { Route } from './route.ts';
import type { ServedModels } from './served-models.ts';

interface RequestLimits {
  /** Most requests to the model at a time. */
  readonly mostRequests: number;
  readonly answerMilliseconds: number;
}

/** The requests to the model that are being answered. */
export class Requests {
  readonly #models: ServedModels;
  readonly #limits: RequestLimits;
  #running = 0;

  constructor(models: ServedModels, limits: RequestLimits) {
    [this.#models, this.#limits] = [models, limits];
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Takes a place for a request until its connection has the answer or is closed, so that clients that send
   * or read slowly count, too. Throws HttpError BUSY if all places are taken.
   */
  enter(reply: FastifyReply): void {
    const { mostRequests } = this.#limits;
    if (this.#running >= mostRequests)
      throw new HttpError('BUSY', `the server answers ${mostRequests} requests already`);
    this.#running++;
    reply.raw.once('close', () => this.#running--);
  }

  /** Answers a request by its route. */
  async answer(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const input = {
      path: Object.fromEntries(
        Object.entries(request.params as Record<string, string>).map(([name, id]) => [
          name,
          readId(id, name),
        ]),
      ),
      query: readFields(route.query, request.query, 'query'),
      body: route.method === 'POST' ? readFields(route.body, request.body, 'body') : {},
    };
    const deadline = new Deadline(this.#limits.answerMilliseconds);
    reply.raw.once('close', () => deadline.abandon());
    const work = this.#models.use(async (loaded) => {
      void reply.header('x-factorflow-model', loaded.version);
      return route.respond({ ...input, signal: deadline.signal }, loaded);
    });
    const found = await deadline.within(work);
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(found));
  }
}
