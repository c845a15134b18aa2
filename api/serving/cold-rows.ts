import type { RecordBatch } from 'apache-arrow';
import { attributeBatches } from '../../connectors/model/attribute-table.ts';
import { UsageError } from '../../engine/errors.ts';
import { formatCount, shown } from '../../engine/format.ts';
import { isId, keysOfIds } from '../../engine/keys/find-id.ts';
import { keyCount, type KeyType } from '../../engine/keys/key-column.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import {
  type AttributeRows,
  encodeAttributes,
  requireDistinct,
} from '../../operators/attributes/attribute-rows.ts';
import { plainBatch } from '../../operators/attributes/attribute-values.ts';
import { type ModelAttributes, withAttributeRows } from '../../operators/attributes/cold-rows.ts';
import { RowEncoder } from '../../operators/attributes/encode-rows.ts';
import { type AttributeEncoding, GrowingRows } from '../../operators/attributes/encoding.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { Dataset } from '../dataset.ts';
import { storedAttributes } from '../loaded-parts.ts';
import { joinedFactors, type ModelParts, sidesOf } from '../model-parts.ts';
import { readyPlan } from '../run-rows.ts';
import type { RunOptions } from '../run-session.ts';

/** The coefficients of a side as one batch of rows. */
export function coefficientBatch(attributes: ModelAttributes | undefined): RecordBatch | undefined {
  if (attributes === undefined) return undefined;
  const stored = storedAttributes(attributes);
  const [batch] = attributeBatches(stored, attributes.coefficients.features);
  return batch;
}

/** Encoders, whose tables of values are made once for all models with the same encoding. */
const encoders = new WeakMap<AttributeEncoding, RowEncoder>();

function encoderOf(encoding: AttributeEncoding): RowEncoder {
  const encoder = encoders.get(encoding) ?? new RowEncoder(encoding);
  encoders.set(encoding, encoder);
  return encoder;
}

/** The parts of a model with further items or users: see Model.withItems. */
export async function partsWithRows(
  parts: ModelParts,
  side: 'user' | 'item',
  given: Dataset | readonly object[],
  options: RunOptions,
): Promise<ModelParts> {
  const method = side === 'item' ? 'withItems' : 'withUsers';
  checkOptions(method, options, runOptionNames);
  const attributes = parts.attributes?.[side];
  if (attributes === undefined)
    throw new UsageError(
      `the model has no attributes of ${side}s, so ${method} cannot compute their factors`,
      {
        advice: `Train it with ${side}Attributes`,
      },
    );
  const rows =
    given instanceof Dataset
      ? await datasetRows(given, attributes, parts.session, options)
      : plainRows(method, given, attributes, parts[`${side}s`].type);
  const { added, changed, kept, model } = extendedParts(parts, side, rows, attributes);
  const texts = [
    `${formatCount(added)} ${side}s added by their attributes`,
    ...(changed > 0 ? [`${formatCount(changed)} without ratings got factors of their new attributes`] : []),
    ...(kept > 0 ? [`${formatCount(kept)} are known and keep their factors`] : []),
    ...(rows.withoutId > 0 ? [`${formatCount(rows.withoutId)} rows without an id are left out`] : []),
  ];
  options.onEvent?.({ type: 'note', code: 'rows-added', count: added, text: texts.join(', ') });
  return model;
}

/** The parts with further rows of a side. The indexes of items are dropped where the items change. */
export function extendedParts(
  parts: ModelParts,
  side: 'user' | 'item',
  rows: AttributeRows,
  { coefficients }: Pick<ModelAttributes, 'coefficients'>,
) {
  const { indexes, means, metadata, ...kept } = parts;
  const whole = joinedFactors(parts, sidesOf(parts));
  const extended = withAttributeRows(
    {
      ids: parts[`${side}s`],
      factors: side === 'item' ? whole.itemFactors : whole.userFactors,
      columns: parts.rank,
      counts: parts[`${side}Counts`],
      means: means?.[`${side}s`],
    },
    rows,
    coefficients,
  );
  const model: ModelParts = {
    ...kept,
    ...(side === 'user' && indexes && { indexes }),
    [`${side}s`]: extended.ids,
    [`${side}Factors`]: extended.factors,
    [`${side}Counts`]: extended.counts,
    means: means && { ...means, [`${side}s`]: extended.means },
    metadata: metadata && { ...metadata, [`${side}s`]: keyCount(extended.ids) },
  };
  return { ...extended, model };
}

async function datasetRows(
  given: Dataset,
  { id, encoding }: ModelAttributes,
  session: ModelParts['session'],
  options: RunOptions,
): Promise<AttributeRows> {
  const ctx = session.context(options);
  const sink = encodeAttributes(encoderOf(encoding), id, encoding);
  return runInto(await readyPlan(given, sink.requiredColumns(), ctx.signal), sink, ctx);
}

function plainRows(
  method: string,
  given: readonly object[],
  { id, encoding }: ModelAttributes,
  type: KeyType,
): AttributeRows {
  if (!Array.isArray(given) || given.some((row) => typeof row !== 'object' || row === null))
    throw new UsageError(`${method} takes a data set or an array of objects, got ${shown(given)}`, {
      advice: `For example [{ ${id}: 1, ${encoding.columns[0]?.name ?? 'category'}: ... }]`,
    });
  const objects = given as readonly Readonly<Record<string, unknown>>[];
  const ids = objects.map((row, at) => {
    const value = row[id];
    if (isId(value)) return value;
    throw new UsageError(`row ${at + 1} of ${method} has no id in ${id}: ${shown(value)}`);
  });
  const encoder = encoderOf(encoding);
  const rows = new GrowingRows();
  encoder.encode(plainBatch(objects), rows);
  const keys = keysOfIds(ids, type);
  requireDistinct(keys, id);
  return { ids: keys, matrix: rows.matrix(encoder.features), withoutId: 0 };
}
