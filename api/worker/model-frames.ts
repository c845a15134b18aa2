import { Vector } from 'apache-arrow';
import { factorFrames, readFactorFrame } from '../../connectors/model/factor-frames.ts';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { numbersOf } from '../../engine/numbers/half.ts';
import { Model } from '../model.ts';
import { idColumnOf } from '../serving/factor-arrays.ts';
import type { Session } from '../session.ts';
import { FactorSide } from './factor-side.ts';
import { objectOf } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { type Request, sideOf, text, whole } from './requests.ts';
import type { Side } from './block-facts.ts';

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
