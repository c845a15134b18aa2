import { Vector } from 'apache-arrow';
import { factorFrames, readFactorFrame } from '../../connectors/model/factor-frames.ts';
import { sortedById } from '../../connectors/model/factor-table.ts';
import { idCount } from '../../connectors/model/id-column.ts';
import type { FactorTable } from '../../connectors/model/write-factors.ts';
import { CapacityError, DataError, UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { concatKeys, keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { numbersOf } from '../../engine/numbers/half.ts';
import { sharedArray } from '../../engine/partition.ts';
import { Model } from '../model.ts';
import { idColumnOf, keysOf } from '../serving/factor-arrays.ts';
import type { Session } from '../session.ts';
import type { Side } from './block-facts.ts';
import { objectOf } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { type Request, sideOf, text, whole } from './requests.ts';

const sides = ['users', 'items'] as const;

/**
 * Copies of the factors at the peak: as they arrived, sorted by id, and the items once more by norm, in
 * addition to the lists.
 */
const COPIES = 3;

/**
 * Sends a model to the parent: frames `factors` of both sides, and frames `numbers` with one number for each
 * row. Returns the other data of the model, for the answer. `GivenModel` takes the same frames.
 */
export async function sendModel(parent: Parent, id: number, model: Model): Promise<JsonObject> {
  const { means, itemCounts } = model;
  for (const side of sides) {
    await sendFactors(parent, id, model, side);
    const numbers = { means: means?.[side], counts: side === 'items' ? itemCounts : model.userCounts };
    for (const [name, values] of Object.entries(numbers)) {
      if (values === undefined) continue;
      const { buffer, byteOffset, byteLength } = Float32Array.from(values);
      await parent.send({ type: 'numbers', id, side, name }, new Uint8Array(buffer, byteOffset, byteLength));
    }
  }
  return {
    rank: model.rank,
    features: model.features,
    columns: { ...model.columns },
    coldStartStrategy: model.coldStartStrategy,
    meanRating: means?.mean ?? null,
    metadata: model.metadata,
  };
}

/** Sends frames `factors` of one side. */
export async function sendFactors(parent: Parent, id: number, model: Model, side: Side): Promise<void> {
  const { columns, values, rows: of } = side === 'users' ? model.userArrays : model.itemArrays;
  const { data } = side === 'users' ? model.userFactors : model.itemFactors;
  const ids = keysFromVector(new Vector([data.children[0]]), 'id');
  for (const { first, rows, bytes } of factorFrames(idColumnOf(ids), values, columns))
    await parent.send({ type: 'factors', id, side, first, rows, of }, bytes);
}

/**
 * A model that the parent sends in several requests. After a request `model`, a side stays as it is until
 * factors arrive for it.
 */
export class GivenModel {
  readonly #session: Session;
  readonly #sides = { users: new FactorSide('users'), items: new FactorSide('items') };

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Takes a request `factors`. Its field `features` is the number of values of a row. Throws CapacityError if
   * the model takes too much memory.
   */
  factors({ fields, payload }: Request): JsonObject {
    const { users, items } = this.#sides;
    const { ids, factors } = readFactorFrame(payload, whole(fields, 'features'));
    this.#sides[sideOf(fields)].add({ ids, factors: numbersOf(factors) });
    const [bytes, budget] = [4 * COPIES * (users.values + items.values), this.#session.memoryBudget];
    if (bytes > budget)
      throw new CapacityError(
        `the factors take about ${formatBytes(bytes)}, and the budget is ${formatBytes(budget)}`,
        { phase: 'load', advice: 'Send fewer users at a time, or raise the budget' },
      );
    return {};
  }

  /** Takes a request `numbers`. */
  numbers({ fields, payload }: Request): JsonObject {
    this.#sides[sideOf(fields)].setNumbers(text(fields, 'name'), new Float32Array(payload.slice().buffer));
    return {};
  }

  /** The whole model. Throws if a side is missing. */
  model({ fields }: Request): Model {
    const features = whole(fields, 'features');
    const { users, items } = this.#sides;
    const [{ ids: userIds, factors: userFactors }, { ids: itemIds, factors: itemFactors }] = [
      users.take(features),
      items.take(features),
    ];
    const [means, counts] = ['means', 'counts'].map((name) => ({
      users: users.numbers(name),
      items: items.numbers(name),
    }));
    const { meanRating } = fields;
    return new Model({
      rank: features,
      users: userIds,
      items: itemIds,
      userFactors,
      itemFactors,
      columns: objectOf(fields.columns, 'columns') as unknown as Model['columns'],
      coldStartStrategy: fields.coldStartStrategy === 'drop' ? 'drop' : 'nan',
      metadata: objectOf(fields.metadata, 'metadata'),
      session: this.#session,
      ...(means.users && means.items && typeof meanRating === 'number'
        ? { means: { mean: meanRating, users: means.users, items: means.items } }
        : {}),
      ...(counts.items ? { itemCounts: Uint32Array.from(counts.items) } : {}),
      ...(counts.users ? { userCounts: Uint32Array.from(counts.users) } : {}),
    });
  }
}

/** One side of a model that the parent sends: factors in parts, in any order, and numbers for each row. */
class FactorSide {
  readonly #side: Side;
  readonly #numbers = new Map<string, Float32Array>();
  #parts: readonly FactorTable[] = [];
  /** The next rows replace these. */
  #isComplete = false;

  constructor(side: Side) {
    this.#side = side;
  }

  /** Number of factors so far. */
  get values(): number {
    return this.#parts.reduce((sum, { factors }) => sum + factors.length, 0);
  }

  /** Adds rows. The first ones after `take` replace all earlier ones, and their numbers. */
  add(rows: FactorTable): void {
    if (this.#isComplete) this.#numbers.clear();
    this.#parts = this.#isComplete ? [rows] : [...this.#parts, rows];
    this.#isComplete = false;
  }

  setNumbers(name: string, values: Float32Array): void {
    this.#numbers.set(name, values);
  }

  /** Numbers of the rows by ascending id. */
  numbers(name: string): Float32Array | undefined {
    return this.#numbers.get(name);
  }

  /**
   * All rows by ascending id, in shared memory. Throws DataError for repeated ids, UsageError for no rows.
   */
  take(features: number): { readonly ids: KeyColumn; readonly factors: Float32Array } {
    this.#isComplete = true;
    const whole = sortedById(this.#joined(features), features, 'the feed');
    this.#parts = [whole];
    const ids = keysOf(whole.ids);
    for (const [name, { length }] of this.#numbers) {
      if (length !== keyCount(ids))
        throw new DataError(`the ${this.#side} have ${length} ${name}, need ${keyCount(ids)}`, {
          phase: 'load',
        });
    }
    return { ids, factors: whole.factors };
  }

  #joined(features: number): FactorTable {
    const parts = this.#parts;
    if (parts.length === 0)
      throw new UsageError(`the ${this.#side} of the model are missing`, {
        advice: 'Send their factors before the request model',
      });
    const types = new Set(parts.filter(({ factors }) => factors.length > 0).map(({ ids }) => ids.type));
    if (types.size > 1)
      throw new DataError(`ids are ${[...types].join(' and ')}, need one type`, {
        phase: 'load',
        file: 'the feed',
      });
    const rows = parts.reduce((sum, { ids }) => sum + idCount(ids), 0);
    if (this.values !== rows * features)
      throw new DataError(`the factors of the ${this.#side} are not ${features} for each row`, {
        phase: 'load',
        file: 'the feed',
      });
    const [only] = parts;
    if (parts.length === 1 && only.factors.buffer instanceof SharedArrayBuffer) return only;
    const [type = only.ids.type] = types;
    const keys = concatKeys(
      type,
      parts.filter(({ ids }) => ids.type === type).map(({ ids }) => keysOf(ids)),
    );
    const factors = sharedArray(Float32Array, this.values);
    let at = 0;
    for (const part of parts) {
      factors.set(part.factors, at);
      at += part.factors.length;
    }
    return { ids: idColumnOf(keys), factors };
  }
}
