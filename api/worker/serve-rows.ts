import { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { sizedParams } from '../../operators/als/als-params.ts';
import { baseBytes, dataBytes } from '../../operators/planner/memory-budget.ts';
import type { Session } from '../session.ts';
import { ALS } from '../training/als.ts';
import { trainingDevice } from '../training/training-device.ts';
import { FixedRows, HeldBlocks } from './held-blocks.ts';
import type { Opening, RowTraining } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { RatingsFeed, requireWholeIds } from './ratings-feed.ts';
import { nextRequest, PayloadMemory, type Request, share, sideOf, sumsOf, text, whole } from './requests.ts';
import { lossOfBlock, RowBlock } from './row-block.ts';
import { RowExchange } from './row-exchange.ts';

const requests =
  'load, build, start, send, take, fixed, equations, add, previous, gram, solve, loss, state, release, end';

/** A response: its fields and a payload. */
interface Answer {
  readonly fields: JsonObject;
  readonly payload?: Uint8Array;
}

/** Answers requests about blocks of rows until the request `end`. Throws the error of a failed request. */
export async function serveRows(
  parent: Parent,
  opening: Opening,
  session: Session,
  signal: AbortSignal,
): Promise<void> {
  const als = ALS.spark(opening.params);
  const { biases, regOffset, unobservedWeight, weight, alpha } = als.params;
  const ofAllRatings = {
    biases,
    regOffset: regOffset !== 0,
    unobservedWeight: unobservedWeight !== undefined,
    weight: als.params.implicitPrefs && weight !== 'spark',
    'alpha auto': alpha === 'auto' && als.params.implicitPrefs,
  };
  const params = sizedParams(als.params, { users: 1, items: 1, ratings: 1 });
  for (const [name, acts] of Object.entries(ofAllRatings)) {
    if (acts)
      throw new UsageError(`${name} cannot be used on blocks of rows: it needs sums over all ratings`, {
        advice: 'Leave it out, or train on one host',
      });
  }
  const context = session.context({ signal });
  const { executor } = trainingDevice(session.device, context.executor, params);
  await Holdings.ofRun({ ...context, executor }, async (ctx) => {
    const rows = new RowRequests(parent, { ...opening, params }, session, ctx);
    const memory = new PayloadMemory();
    for (;;) {
      const request = await nextRequest(parent.cursor, memory);
      if (request.type === 'end') return;
      const { fields, payload } = await rows.answer(request);
      await parent.send({ type: 'answer', id: request.id, ...fields }, payload);
      throwIfAborted(signal, 'train');
    }
  });
}

/**
 * The blocks of rows and the factors of fixed sides that one worker holds, with the handlers of requests on
 * them.
 */
class RowRequests {
  readonly #training: RowTraining;
  readonly #session: Session;
  readonly #ctx: ExecutionContext;
  readonly #blocks: HeldBlocks;
  readonly #fixed = new FixedRows();
  readonly #exchange: RowExchange;

  constructor(parent: Parent, training: RowTraining, session: Session, ctx: ExecutionContext) {
    this.#training = training;
    this.#session = session;
    this.#ctx = ctx;
    this.#blocks = new HeldBlocks(dataBytes(session), this.#fixed);
    this.#exchange = new RowExchange(parent, training, this.#fixed, ctx);
  }

  async answer(request: Request): Promise<Answer> {
    const { type, fields } = request;
    if (type === 'state') return { fields: this.#state() };
    const name = text(fields, 'block');
    if (type !== 'release')
      await this.#blocks.makeRoom(type, name, type === 'take' ? text(fields, 'from') : undefined);
    if (type === 'load') return { fields: await this.#load(request) };
    const block = this.#blocks.get(name);
    if (block === undefined) return { fields: { missing: 'block' } };
    // The rows for equations stay on the device as long as no other request needs its memory.
    if (type !== 'equations') await block.endShares();
    if (type === 'release') {
      await this.#blocks.remove(name);
      return { fields: {} };
    }
    if (type === 'build') return { fields: await this.#build(request, block) };
    const exchanged = this.#exchange.answer(request, block, this.#blocks);
    if (exchanged !== undefined) return { fields: await exchanged };
    if (type === 'start') return { fields: await this.#start(request, block) };
    if (type === 'solve') return { fields: await this.#solve(request, block) };
    if (type === 'gram') return this.#gram(request, block);
    if (type === 'loss')
      return { fields: await lossOfBlock(block, this.#fixed.versionOf(block), request.fields) };
    throw new UsageError(`unknown request ${type}`, {
      advice: `There are: ${requests}`,
    });
  }

  #state(): JsonObject {
    const stateOf = (block: RowBlock) => ({
      side: block.side,
      built: block.bytes !== undefined,
      version: block.version ?? null,
      fixed: this.#fixed.versionOf(block) ?? null,
    });
    return {
      blocks: Object.fromEntries([...this.#blocks.entries()].map(([name, block]) => [name, stateOf(block)])),
    };
  }

  async #load({ fields, payload }: Request): Promise<JsonObject> {
    const [name, side] = [text(fields, 'block'), sideOf(fields)];
    const feed = await RatingsFeed.open(new ByteCursor(once(payload)));
    const { user, item } = this.#training.columns;
    requireWholeIds(feed, [user, item]);
    let block = this.#blocks.get(name);
    if (block === undefined) {
      block = new RowBlock(side, feed.schema, this.#training, this.#session, this.#ctx);
      this.#blocks.add(name, block);
    }
    if (block.side !== side) throw new UsageError(`the block ${name} is one of ${block.side}`);
    await block.load(feed.batches());
    return { ratings: block.ratings };
  }

  async #build({ fields }: Request, block: RowBlock): Promise<JsonObject> {
    const blocks = fields.blocks === undefined ? undefined : whole(fields, 'blocks');
    if (blocks === 0) throw new UsageError('the request "build" needs at least one block, got 0');
    const { workers } = this.#session;
    const most = fields.most === undefined ? 1 : share(fields, 'most');
    const { bytes, ...facts } = await block.build(whole(fields, 'rows'), blocks, most);
    return { ...facts, bytes: { ...bytes, process: baseBytes(workers) } };
  }

  async #start({ fields, id }: Request, block: RowBlock): Promise<JsonObject> {
    const solver = await block.solver(sumsOf(fields));
    await solver.start(whole(fields, 'version'));
    await this.#exchange.sendAll(id, block, solver, false);
    return {};
  }

  async #solve({ fields, id, payload }: Request, block: RowBlock): Promise<JsonObject> {
    const { rank, implicitPrefs } = this.#training.params;
    const fromZeros = fields.previous === null || fields.previous === undefined;
    const missing = this.#lacks(fields, block, fromZeros);
    if (missing !== undefined) return { missing };
    if (implicitPrefs && payload.length !== 8 * rank * rank)
      throw new UsageError(
        `solve needs G of the fixed side, ${8 * rank * rank} bytes, and ${payload.length} arrived`,
      );
    const solver = await block.solver(sumsOf(fields));
    const started = performance.now();
    const sums = fields.equations === true ? block.takeSums() : undefined;
    if (sums === undefined) this.#fixed.fix(block, solver);
    const gram = implicitPrefs ? new Float64Array(payload.slice().buffer) : undefined;
    await solver.solve(whole(fields, 'version'), {
      fromZeros,
      ...(gram ? { gram } : {}),
      ...(sums ? { sums } : {}),
    });
    const seconds = (performance.now() - started) / 1000;
    await this.#exchange.sendAll(id, block, solver, fields.exact === true);
    return { seconds, kernel: solver.kernelName(sums !== undefined) };
  }

  /** The name of what a block lacks to be solved, if anything. */
  #lacks(fields: JsonObject, block: RowBlock, fromZeros: boolean): string | undefined {
    const summed = fields.equations === true;
    const arrived = summed ? block.summed : this.#fixed.versionOf(block);
    if (arrived !== whole(fields, 'fixed') && block.ratings > 0) return summed ? 'equations' : 'fixed';
    if (!fromZeros && block.version !== whole(fields, 'previous')) return 'previous';
    return undefined;
  }

  async #gram({ fields }: Request, block: RowBlock): Promise<Answer> {
    const solver = block.started;
    if (solver === undefined || block.version !== whole(fields, 'version'))
      return { fields: { missing: 'version' } };
    const gram = await solver.gram();
    return { fields: {}, payload: new Uint8Array(gram.buffer) };
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
