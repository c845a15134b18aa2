import type { RecordBatch, Schema } from 'apache-arrow';
import { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { type Id, idValues } from '../../engine/keys/find-id.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import type { Dataset } from '../dataset.ts';
import type { Model } from '../model.ts';
import type { Session } from '../session.ts';
import { ALS } from '../training/als.ts';
import { SGD } from '../training/sgd.ts';
import { GivenModel, sendFactors, sendModel } from './model-frames.ts';
import { objectOf, type ServeOptions } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { RatingsFeed } from './ratings-feed.ts';
import { type Request, sideOf, text, whole } from './requests.ts';

/** Rows are sent in frames of about this number of bytes. */
const FRAME_BYTES = 1 << 22;

/** Rows that the parent has sent, under a name, for any number of requests. */
interface HeldRows {
  readonly schema: Schema;
  readonly batches: readonly RecordBatch[];
}

type Handler = (request: Request, input: AsyncGenerator<Uint8Array>) => Promise<JsonObject> | JsonObject;

/** The model and the rows that a worker holds, with the handlers of requests about them. */
export class ModelRequests {
  readonly #parent: Parent;
  readonly #session: Session;
  readonly #options: ServeOptions;
  readonly #rows = new Map<string, HeldRows>();
  #given: GivenModel;
  #model: Model | undefined;

  readonly #handlers: Readonly<Record<string, Handler>> = {
    train: (request, input) => this.#train(request, input),
    data: (request, input) => this.#data(request, input),
    forget: ({ fields }) => {
      this.#rows.delete(text(fields, 'name'));
      return {};
    },
    load: async ({ id, fields }) => {
      const { onEvent } = this.#parent;
      return this.#replace(id, await this.#session.loadModel(text(fields, 'path'), { onEvent }));
    },
    save: (request, input) => this.#save(request, input),
    histories: async ({ id }) => {
      const lists = this.#held.rated?.lists;
      return lists === undefined ? { rows: null } : this.#sendLists(id, lists);
    },
    factors: (request) => this.#given.factors(request),
    numbers: (request) => this.#given.numbers(request),
    model: (request) => this.#take(request),
    recommend: (request) => this.#recommend(request),
    similar: (request) => this.#similar(request),
    'fold-in': (request) => this.#foldIn(request),
    update: (request) => this.#update(request),
    evaluate: (request) => this.#evaluate(request),
  };

  constructor(parent: Parent, session: Session, options: ServeOptions) {
    this.#parent = parent;
    this.#session = session;
    this.#options = options;
    this.#given = new GivenModel(session);
  }

  async answer(request: Request, input: AsyncGenerator<Uint8Array>): Promise<JsonObject> {
    const handler = Object.hasOwn(this.#handlers, request.type) ? this.#handlers[request.type] : undefined;
    if (handler === undefined)
      throw new UsageError(`unknown request ${request.type}`, {
        advice: `There are: ${Object.keys(this.#handlers).join(', ')}, end`,
      });
    return handler(request, input);
  }

  get #held(): Model {
    if (this.#model !== undefined) return this.#model;
    throw new UsageError('the worker holds no model', { advice: 'Train one, load one, or send one' });
  }

  get #run() {
    return { signal: AbortSignal.any([this.#options.signal, this.#parent.gone]) };
  }

  async #train({ id, fields }: Request, input: AsyncGenerator<Uint8Array>): Promise<JsonObject> {
    const { algorithm, rows } = fields;
    const params = objectOf(fields.params ?? {}, 'params');
    if (algorithm !== 'als' && algorithm !== 'sgd')
      throw new UsageError(`algorithm must be als or sgd, got ${shown(algorithm)}`);
    const trainer = algorithm === 'als' ? new ALS(params) : new SGD(params);
    const feed = await RatingsFeed.open(new ByteCursor(input));
    const batches = async function* () {
      yield* feed.batchesOf(rows);
      // To the last frame, after which the end of stdin is noticed.
      for await (const _ of input);
    };
    const ratings = this.#session.from(batches(), feed.schema);
    await this.#drop();
    const validation =
      fields.validation === undefined ? {} : { validation: this.#dataset(fields.validation) };
    const { onEvent } = this.#parent;
    const model = await trainer.fit(ratings, { ...validation, ...this.#run, onEvent });
    await this.#parent.send({ type: 'report', id, ...this.#options.report(model, this.#session) });
    return this.#replace(id, model);
  }

  async #data({ fields }: Request, input: AsyncGenerator<Uint8Array>): Promise<JsonObject> {
    const feed = await RatingsFeed.open(new ByteCursor(input));
    const batches: RecordBatch[] = [];
    for await (const batch of feed.batches()) batches.push(batch);
    this.#rows.set(text(fields, 'name'), { schema: feed.schema, batches });
    return { rows: feed.rows };
  }

  async #save({ fields }: Request, input: AsyncGenerator<Uint8Array>): Promise<JsonObject> {
    const feed = fields.histories === true ? await RatingsFeed.open(new ByteCursor(input)) : undefined;
    const lists = feed && batchStream(feed.schema, feed.batches());
    await this.#held.saveLists(text(fields, 'path'), { overwrite: fields.overwrite === true }, lists);
    return {};
  }

  async #take(request: Request): Promise<JsonObject> {
    await this.#drop();
    this.#model = this.#given.model(request);
    return {};
  }

  /** Holds a new model, and sends it to the parent. */
  async #replace(id: number, model: Model): Promise<JsonObject> {
    await this.#drop();
    this.#model = model;
    this.#given = new GivenModel(this.#session);
    return { model: await sendModel(this.#parent, id, model) };
  }

  async #drop(): Promise<void> {
    const old = this.#model;
    this.#model = undefined;
    await old?.close();
  }

  async #recommend({ id, fields }: Request): Promise<JsonObject> {
    const { exclude, ratings, allow, deny } = fields;
    const n = whole(fields, 'n');
    const options = {
      ...(exclude === undefined ? {} : { exclude: this.#dataset(exclude) }),
      ...(allow === undefined ? {} : { allow: allow as Id[] }),
      ...(deny === undefined ? {} : { deny: deny as Id[] }),
    };
    if (ratings === undefined) return this.#sendLists(id, this.#lists(this.#held, fields, n, options));
    const { model } = await this.#held.foldIn(this.#dataset(ratings), { ...this.#run, ...regOf(fields) });
    try {
      return await this.#sendLists(id, model.recommendForAllUsers(n, options));
    } finally {
      await model.close();
    }
  }

  #lists(model: Model, { users }: JsonObject, n: number, options: { exclude?: Dataset }): Dataset {
    return users === 'all'
      ? model.recommendForAllUsers(n, options)
      : model.recommendForUsers(this.#ids(users, 'user'), n, options);
  }

  async #similar({ id, fields }: Request): Promise<JsonObject> {
    const side = sideOf(fields);
    const n = whole(fields, 'n');
    const model = this.#held;
    const unit = side === 'users' ? 'user' : 'item';
    const ids = this.#ids(fields.ids, unit);
    const unknown = ids.find((one) => !(unit === 'user' ? model.hasUser(one) : model.hasItem(one)));
    if (unknown !== undefined) throw new UsageError(`the model has no ${unit} ${String(unknown)}`);
    return this.#sendLists(id, side === 'users' ? model.similarUsers(ids, n) : model.similarItems(ids, n));
  }

  async #foldIn({ id, fields }: Request): Promise<JsonObject> {
    const { model, users, withoutItems, coldRatings } = await this.#held.foldIn(
      this.#dataset(fields.ratings),
      { ...this.#run, ...regOf(fields) },
    );
    await sendFactors(this.#parent, id, model, 'users');
    await model.close();
    return { users, withoutItems, coldRatings };
  }

  async #update({ id, fields }: Request): Promise<JsonObject> {
    const params = objectOf(fields.params ?? {}, 'params');
    const { onEvent } = this.#parent;
    const model = await this.#held.update(this.#dataset(fields.ratings), {
      ...params,
      ...this.#run,
      onEvent,
    });
    return this.#replace(id, model);
  }

  async #evaluate({ fields }: Request): Promise<JsonObject> {
    const ratings = this.#dataset(fields.ratings);
    if (fields.ranking === undefined)
      return { metrics: plain(await this.#held.evaluate(ratings, this.#run)) };
    const exclude = fields.exclude === undefined ? {} : { exclude: this.#dataset(fields.exclude) };
    const ranking = objectOf(fields.ranking, 'ranking');
    return {
      metrics: plain(await this.#held.evaluateRanking(ratings, { ...ranking, ...exclude, ...this.#run })),
    };
  }

  /** Sends lists in frames; each is a whole Arrow stream. */
  async #sendLists(id: number, dataset: Dataset): Promise<JsonObject> {
    let rows = 0;
    let stream: RowStream | undefined;
    const send = async (of: RowStream) => {
      rows += of.rows;
      await this.#parent.send({ type: 'lists', id, rows: of.rows }, of.take());
      of.giveBack();
    };
    for await (const batch of dataset) {
      stream ??= new RowStream(batch.schema, true);
      stream.add(batch);
      if (stream.length < FRAME_BYTES) continue;
      await send(stream);
      stream = undefined;
    }
    if (stream !== undefined) await send(stream);
    return { rows };
  }

  #heldRows(name: unknown): HeldRows {
    const held = typeof name === 'string' ? this.#rows.get(name) : undefined;
    if (held === undefined)
      throw new UsageError(`the worker holds no rows ${shown(name)}`, { advice: 'Send them as data first' });
    return held;
  }

  #dataset(name: unknown): Dataset {
    const { schema, batches } = this.#heldRows(name);
    return this.#session.from(batches, schema);
  }

  /** Ids as a list, or as the first column of rows that the worker holds. */
  #ids(given: unknown, side: 'user' | 'item'): Id[] {
    if (Array.isArray(given)) return given as Id[];
    return this.#heldRows(given).batches.flatMap((batch) => {
      const vector = batch.getChildAt(0);
      if (vector === null) return [];
      const keys = keysFromVector(vector, side);
      const { at } = idValues(keys, undefined, side);
      return Array.from({ length: keyCount(keys) }, (_, row) => at(row));
    });
  }
}

function regOf({ regParam }: JsonObject): { readonly regParam?: number } {
  return typeof regParam === 'number' ? { regParam } : {};
}

/** Results as plain JSON. */
function plain(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}
