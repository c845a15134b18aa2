import { Vector } from 'apache-arrow';
import { factorFrames, readFactorFrame } from '../../connectors/model/factor-frames.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { concatKeys, keysFromVector } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { Model } from '../model.ts';
import type { RunSession } from '../run-session.ts';
import { idColumnOf, keysOf } from '../serving/factor-arrays.ts';
import { objectOf } from './opening.ts';
import type { Parent } from './parent-link.ts';
import { type Request, sideOf, text, whole } from './requests.ts';
import type { Side } from './block-facts.ts';

const sides = ['users', 'items'] as const;

/** The factors of one side, as they arrived. */
interface GivenSide {
  readonly ids: KeyColumn[];
  readonly factors: Float32Array[];
  readonly numbers: Map<string, Float32Array>;
}

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

/** A model that the parent sends in several requests. */
export class GivenModel {
  readonly #sides: Record<Side, GivenSide> = { users: emptySide(), items: emptySide() };

  /** Takes a request `factors`. Its field `features` is the number of values of a row. */
  factors({ fields, payload }: Request): JsonObject {
    const side = this.#sides[sideOf(fields)];
    const { ids, factors } = readFactorFrame(payload, whole(fields, 'features'));
    side.ids.push(keysOf(ids));
    side.factors.push(factors);
    return {};
  }

  /** Takes a request `numbers`. */
  numbers({ fields, payload }: Request): JsonObject {
    const side = this.#sides[sideOf(fields)];
    side.numbers.set(text(fields, 'name'), new Float32Array(payload.slice().buffer));
    return {};
  }

  /** The whole model. Throws if a side is missing. */
  model({ fields }: Request, session: RunSession): Model {
    const features = whole(fields, 'features');
    const { users, items } = this.#sides;
    const [means, counts] = ['means', 'counts'].map((name) => ({
      users: users.numbers.get(name),
      items: items.numbers.get(name),
    }));
    const { meanRating } = fields;
    return new Model({
      rank: features,
      ...joined(users, 'users', features),
      ...joined(items, 'items', features),
      columns: objectOf(fields.columns, 'columns') as unknown as Model['columns'],
      coldStartStrategy: fields.coldStartStrategy === 'drop' ? 'drop' : 'nan',
      metadata: objectOf(fields.metadata, 'metadata'),
      session,
      ...(means.users && means.items && typeof meanRating === 'number'
        ? { means: { mean: meanRating, users: means.users, items: means.items } }
        : {}),
      ...(counts.items ? { itemCounts: Uint32Array.from(counts.items) } : {}),
      ...(counts.users ? { userCounts: Uint32Array.from(counts.users) } : {}),
    } as ConstructorParameters<typeof Model>[0]);
  }
}

function emptySide(): GivenSide {
  return { ids: [], factors: [], numbers: new Map() };
}

/** Ids and factors of one side, under the names of ModelParts. */
function joined({ ids, factors, numbers }: GivenSide, side: Side, features: number) {
  if (ids.length === 0)
    throw new UsageError(`the ${side} of the model are missing`, {
      advice: 'Send their factors before the request model',
    });
  const keys = ids.length === 1 ? ids[0] : concatKeys(ids[0].type, ids);
  const rows = keyCount(keys);
  for (const [name, values] of numbers) {
    if (values.length !== rows)
      throw new DataError(`the ${side} have ${values.length} ${name}, need ${rows}`, { phase: 'load' });
  }
  const all = sharedArray(Float32Array, rows * features);
  let at = 0;
  for (const part of factors) {
    all.set(part, at);
    at += part.length;
  }
  return side === 'users' ? { users: keys, userFactors: all } : { items: keys, itemFactors: all };
}
