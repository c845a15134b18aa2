import type { RecordBatch } from 'apache-arrow';
import { attributeBatches } from '../../connectors/model/attribute-table.ts';
import { UsageError } from '../../engine/errors.ts';
import { counted, formatCount, shown } from '../../engine/format.ts';
import { isId, keysOfIds } from '../../engine/keys/find-id.ts';
import { keyCount, type KeyType } from '../../engine/keys/key-column.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import {
  type AttributeRows,
  type EncodedRows,
  encodeAttributes,
  requireDistinct,
} from '../../operators/attributes/attribute-rows.ts';
import { plainBatch } from '../../operators/attributes/attribute-values.ts';
import type { AttributeMatrix } from '../../operators/attributes/attribute-matrix.ts';
import { type ModelAttributes, withAttributeRows } from '../../operators/attributes/cold-rows.ts';
import { KeptRows } from '../../operators/attributes/kept-rows.ts';
import { nearestName } from '../../operators/params/nearest-name.ts';
import { fieldOf } from '../../operators/ratings/rows/columns.ts';
import { RowEncoder } from '../../operators/attributes/encode-rows.ts';
import { type AttributeEncoding, GrowingRows } from '../../operators/attributes/encoding.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { Dataset, datasetOf } from '../dataset.ts';
import { storedAttributes } from '../loaded-parts.ts';
import { joinedFactors, type ModelParts, sidesOf } from '../model-parts.ts';
import { readyPlan } from '../run-rows.ts';
import type { RunOptions } from '../run-session.ts';
import { openById } from './item-filters.ts';

/** Rows of attributes: a data set, the path of a file of any supported format, or objects. */
export type GivenRows = Dataset | string | readonly object[];

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

/** Throws UsageError for a field of a row that is neither its id nor an attribute. */
export function requireFields(
  what: string,
  row: object,
  { id, encoding }: Pick<ModelAttributes, 'id' | 'encoding'>,
): void {
  const names = encoding.columns.map(({ name }) => name);
  const unknown = Object.keys(row).find((name) => name !== id && !names.includes(name));
  if (unknown === undefined) return;
  const near = nearestName(unknown, [id, ...names]);
  throw new UsageError(`${what} has the unknown field ${shown(unknown.slice(0, 100))}`, {
    advice: near === undefined ? `The attributes are ${names.join(', ')}` : `Is it ${near}?`,
  });
}

/** The features of one row of attributes. Throws UsageError for one that is not an object, or as requireFields. */
export function encodedRow(what: string, row: unknown, attributes: ModelAttributes): AttributeMatrix {
  if (typeof row !== 'object' || row === null || Array.isArray(row))
    throw new UsageError(`${what} must be an object with values by name, got ${shown(row)}`, {
      advice: `For example { ${attributes.encoding.columns[0]?.name ?? 'country'}: ... }`,
    });
  requireFields(what, row, attributes);
  const encoder = encoderOf(attributes.encoding);
  const rows = new GrowingRows();
  encoder.encode(
    {
      ...plainBatch([row as Readonly<Record<string, unknown>>]),
      refuse: (_, column, problem) => {
        throw new UsageError(`the field ${column} of ${what}: ${problem}`);
      },
    },
    rows,
  );
  return rows.matrix(encoder.features);
}

/** Numbers of the rows of attributes that a model got. */
export interface AddedRows {
  readonly added: number;
  /** Rows without ratings that the model had, and that have the factors of their new attributes now. */
  readonly changed: number;
  /** Rows with ratings, which keep their factors. */
  readonly kept: number;
  /** Rows without any attribute that the training knew: they have the factors of an average row. */
  readonly bare: number;
  /** Values and words that the training did not know, or left out as rare: they count as missing. */
  readonly unknownValues: number;
  /** Rows that were left out, since their id is missing. */
  readonly withoutId: number;
}

export interface AddRowsOptions extends RunOptions {
  /** The rows' column of ids. Default: the name that it had in training. */
  readonly idCol?: string;
}

/** The attributes of a side. Throws UsageError for a model that has none. */
export function requireModelAttributes(
  attributes: ModelParts['attributes'],
  side: 'user' | 'item',
): ModelAttributes {
  const own = attributes?.[side];
  if (own !== undefined) return own;
  throw new UsageError(
    `the model has no attributes of ${side}s, so the factors of further ${side}s are unknown`,
    { advice: `Train it with ${side}Attributes` },
  );
}

/** The parts of a model with further items or users: see Model.withItems. */
export async function partsWithRows(
  parts: ModelParts,
  side: 'user' | 'item',
  given: GivenRows,
  options: AddRowsOptions,
): Promise<AddedRows & { readonly model: ModelParts }> {
  const method = side === 'item' ? 'withItems' : 'withUsers';
  checkOptions(method, options, ['idCol', ...runOptionNames], "{ idCol: 'sku' }");
  const own = requireModelAttributes(parts.attributes, side);
  const attributes = { ...own, id: idColumnOf(method, options.idCol, own) };
  const { session } = parts;
  const { type } = parts[`${side}s`];
  const data = typeof given === 'string' ? await openRows(given, attributes, type, session) : given;
  const rows =
    data instanceof Dataset
      ? await datasetRows(data, attributes, session, options)
      : plainRows(method, data, attributes, type);
  const { model: extended, added, changed, kept } = extendedParts(parts, side, rows, attributes);
  const known = (own.kept ?? new KeptRows(type)).with(rows);
  const model = {
    ...extended,
    attributes: { ...parts.attributes, [side]: { ...own, kept: known } },
  };
  const { withoutId, unknownValues } = rows;
  const { offsets } = rows.matrix;
  // Each row has the constant feature.
  const bare = offsets.subarray(1).filter((end, row) => end - offsets[row] === 1).length;
  const texts = [
    `${formatCount(added)} ${side}s added by their attributes`,
    ...(changed > 0 ? [`${formatCount(changed)} without ratings got factors of their new attributes`] : []),
    ...(kept > 0 ? [`${formatCount(kept)} are known and keep their factors`] : []),
    ...(bare > 0
      ? [
          `${formatCount(bare)} have no attribute that the training knew, and the factors of an average ${side}`,
        ]
      : []),
    ...(unknownValues > 0
      ? [`${counted(unknownValues, 'value')} that the training did not know or left out as rare`]
      : []),
    ...(withoutId > 0 ? [`${counted(withoutId, 'row')} without an id left out`] : []),
  ];
  options.onEvent?.({ type: 'note', code: 'rows-added', count: added, text: texts.join(', ') });
  return { added, changed, kept, bare, unknownValues, withoutId, model };
}

function idColumnOf(method: string, given: unknown, { id, encoding }: ModelAttributes): string {
  if (given === undefined) return id;
  const isAttribute = encoding.columns.some(({ name }) => name === given);
  if (typeof given === 'string' && given !== '' && !isAttribute) return given;
  throw new UsageError(`the option idCol of ${method} is the name of a column of ids, got ${shown(given)}`);
}

/** The parts with further rows of a side. The indexes of items are dropped where the items change. */
export function extendedParts(
  parts: ModelParts,
  side: 'user' | 'item',
  rows: EncodedRows,
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
    ...((side === 'user' || extended.added + extended.changed === 0) && indexes && { indexes }),
    [`${side}s`]: extended.ids,
    [`${side}Factors`]: extended.factors,
    [`${side}Counts`]: extended.counts,
    means: means && { ...means, [`${side}s`]: extended.means },
    metadata: metadata && { ...metadata, [`${side}s`]: keyCount(extended.ids) },
  };
  return { ...extended, model };
}

/** Opens a file of attributes. Its ids are read as text if those of the model are. */
async function openRows(
  path: string,
  { id }: ModelAttributes,
  type: KeyType,
  session: ModelParts['session'],
): Promise<Dataset> {
  const { source } = await openById(path, (schema) => fieldOf(schema, id).name, type === 'utf8');
  return datasetOf(session, source);
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
    throw new UsageError(
      `${method} takes a data set, the path of a file or an array of objects, got ${shown(given)}`,
      {
        advice: `For example [{ ${id}: 1, ${encoding.columns[0]?.name ?? 'category'}: ... }]`,
      },
    );
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
  return { ids: keys, matrix: rows.matrix(encoder.features), withoutId: 0, unknownValues: rows.unknown };
}
