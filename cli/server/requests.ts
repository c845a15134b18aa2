import type { FastifyReply, FastifyRequest } from 'fastify';
import { Deadline } from './deadline.ts';
import { readFields, readId } from './fields.ts';
import { HttpError } from './http-error.ts';
import type { ServerLimits } from './listener-options.ts';
import type { Route } from './route.ts';
import type { ServedModels } from './served-models.ts';
import type { Transfers } from './transfers.ts';

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
      query: readFields(route.query, request.query, 'query'),
      body: route.method === 'POST' ? readFields(route.body, request.body, 'body') : {},
    };
    const deadline = new Deadline(answerMilliseconds);
    reply.raw.once('close', () => deadline.abandon());
    this.#running++;
    const work = this.#models
      .use(async (loaded) => {
        void reply.header('x-factorflow-model', loaded.version);
        return route.respond({ ...input, signal: deadline.signal }, loaded);
      })
      .finally(() => this.#running--);
    const answer = JSON.stringify(await deadline.within(work));
    this.#transfers.hold(reply.raw, answer.length);
    const late = setTimeout(() => reply.raw.destroy(), receiveMilliseconds);
    reply.raw.once('close', () => clearTimeout(late));
    return reply.type('application/json; charset=utf-8').send(answer);
  }
}
