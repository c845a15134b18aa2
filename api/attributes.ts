import type { Schema } from 'apache-arrow';
import { DataError, UsageError } from '../engine/errors.ts';
import { counted, formatCount, shown } from '../engine/format.ts';
import { keyTypeOf } from '../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount } from '../engine/keys/key-column.ts';
import { oneOf } from '../engine/nearest.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { runInto } from '../engine/stream/logical-plan.ts';
import type { Sink } from '../engine/stream/operator.ts';
import type { AttributeCoefficients, SideAttributes } from '../operators/attributes/attribute-matrix.ts';
import {
  attributesOf,
  type AttributeRows,
  encodeAttributes,
  rowsOf,
} from '../operators/attributes/attribute-rows.ts';
import { type ModelAttributes, unknownRows } from '../operators/attributes/cold-rows.ts';
import { RowEncoder } from '../operators/attributes/encode-rows.ts';
import { KeptRows } from '../operators/attributes/kept-rows.ts';
import {
  type AttributeEncoding,
  type AttributeKind,
  attributeKinds,
  describeColumn,
} from '../operators/attributes/encoding.ts';
import { learnEncoding, type WantedColumn } from '../operators/attributes/learn-encoding.ts';
import type { AttributeSizes, RatingsProfile } from '../operators/planner/sizes.ts';
import { checkOptions } from './check-options.ts';
import { type Dataset, datasetOf, requireDataset } from './dataset.ts';
import type { ModelParts } from './model-parts.ts';
import { readyPlan, requireReplayable } from './run-rows.ts';
import { attributeParams } from './option-params.ts';
import { openById } from './serving/item-filters.ts';
import { likelyIdColumn } from './serving/name-columns.ts';
import type { RunSession } from './run-session.ts';
import { extendedParts } from './serving/cold-rows.ts';

/** Attributes of items or users, from which those without ratings get factors, too. */
export interface AttributeOptions {
  /** A row of attributes for each item, or user; also for those without ratings. Read twice. */
  readonly data: Dataset;
  /** Column of ids. Default: the ratings' item (user) column, else one such as sku or item_id, or id. */
  readonly id?: string;
  /**
   * Columns, or columns with their kinds: category, values, words, number or vector. Default: all but the ids,
   * each of the kind that its type and values suggest.
   */
  readonly columns?: readonly string[] | Readonly<Record<string, AttributeKind | undefined>>;
  /** Categories, values and words of fewer rows are left out. Default 2. */
  readonly minCount?: number;
}

/** The options of a trainer for attributes. */
export interface AttributesOptions {
  readonly itemAttributes?: AttributeOptions;
  readonly userAttributes?: AttributeOptions;
}

export const attributeOptionNames = [
  'itemAttributes',
  'userAttributes',
] as const satisfies readonly (keyof AttributesOptions)[];

const sides = ['user', 'item'] as const;

type AttributeSide = (typeof sides)[number];

/** Attributes of a side that have been read. */
interface ReadAttributes {
  readonly id: string;
  readonly encoding: AttributeEncoding;
  readonly rows: AttributeRows;
}

/** The attributes of one trainer. Throws UsageError for an option that is not valid. */
export class TrainerAttributes {
  readonly #options: Readonly<Record<AttributeSide, AttributeOptions | undefined>>;

  constructor({ itemAttributes, userAttributes }: AttributesOptions) {
    this.#options = { user: userAttributes, item: itemAttributes };
    for (const side of sides) {
      const given = this.#options[side];
      if (given !== undefined) checkAttributes(`the option ${side}Attributes`, given);
    }
  }

  /** True if users or items have attributes. */
  get areGiven(): boolean {
    return sides.some((side) => this.#options[side] !== undefined);
  }

  /** Reads the attributes of both sides, if there are any. `columns`: the names of the ratings' columns. */
  async read(
    columns: Readonly<Record<AttributeSide, string>>,
    ctx: ExecutionContext,
  ): Promise<FitAttributes | undefined> {
    const read: Partial<Record<AttributeSide, ReadAttributes>> = {};
    for (const side of sides) {
      const given = this.#options[side];
      if (given !== undefined) read[side] = await readSide(side, given, columns[side], ctx);
    }
    return Object.keys(read).length === 0 ? undefined : new FitAttributes(read);
  }
}

/** The attributes of one fit, or of its plan. */
export class FitAttributes {
  readonly read: Readonly<Partial<Record<AttributeSide, ReadAttributes>>>;

  constructor(read: FitAttributes['read']) {
    this.read = read;
  }

  /**
   * The model of the training with its attributes, and with the items and users that have attributes, but no
   * ratings.
   */
  completed(
    parts: ModelParts,
    coefficients: Partial<Record<'users' | 'items', AttributeCoefficients>> = {},
  ): ModelParts {
    const attributes: Partial<Record<AttributeSide, ModelAttributes>> = {};
    let made = parts;
    for (const side of sides) {
      const [read, own] = [this.read[side], coefficients[`${side}s`]];
      if (read === undefined || own === undefined) continue;
      const kept = new KeptRows(parts[`${side}s`].type).with(read.rows);
      attributes[side] = { id: read.id, encoding: read.encoding, coefficients: own, kept };
      const cold = rowsOf(read.rows, unknownRows(read.rows, parts[`${side}s`]));
      if (keyCount(cold.ids) > 0) made = extendedParts(made, side, cold, attributes[side]).model;
    }
    return { ...made, attributes };
  }

  /** The sizes of the attributes of ids, for a plan. */
  sizesOf(ids: Readonly<Record<'users' | 'items', KeyColumn>>): RatingsProfile['attributes'] {
    const sizes: Partial<Record<'users' | 'items', AttributeSizes>> = {};
    for (const side of sides) {
      const read = this.read[side];
      if (read === undefined) continue;
      const { features, indices } = attributesOf(read.rows, ids[`${side}s`], read.id).matrix;
      sizes[`${side}s`] = { features, entries: indices.length };
    }
    return sizes;
  }

  /** The attributes of the trained ids, for the training. */
  get ofIds(): SideAttributes {
    const ofSide = (side: AttributeSide): SideAttributes['users'] => {
      const read = this.read[side];
      return (
        read &&
        (async (ids, { events }) => {
          const { matrix, known } = attributesOf(read.rows, ids, read.id);
          const others = counted(keyCount(read.rows.ids) - known, `other ${side}`);
          const text = `${formatCount(known)} of ${counted(keyCount(ids), side)} with ratings have attributes, and ${others}`;
          events({ type: 'note', text });
          return matrix;
        })
      );
    };
    return { users: ofSide('user'), items: ofSide('item') };
  }
}

/** Throws UsageError for attributes among the options of SGD. */
export function refuseAttributes(options: object): void {
  const given = attributeOptionNames.find((name) => (options as AttributesOptions)[name] !== undefined);
  if (given !== undefined)
    throw new UsageError(`${given} cannot be used with SGD, which does not train with attributes`, {
      advice: 'Use ALS, or leave it out',
    });
}

function checkAttributes(what: string, given: AttributeOptions): void {
  checkOptions(what, given, ['data', 'id', 'columns'], "{ data: products, id: 'sku' }", attributeParams);
  const { data, id, columns } = given;
  requireDataset(data, `data of ${what}`);
  const isName = (name: unknown) => typeof name === 'string' && name !== '';
  if (id !== undefined && !isName(id))
    throw new UsageError(`id of ${what} is the name of a column, got ${shown(id)}`);
  if (columns === undefined) return;
  const isObject = typeof columns === 'object' && columns !== null;
  const names: readonly unknown[] = Array.isArray(columns) ? columns : isObject ? Object.keys(columns) : [];
  if (names.length === 0 || !names.every(isName) || new Set(names).size < names.length)
    throw new UsageError(`columns of ${what} are names of columns, got ${shown(columns)}`, {
      advice: "For example ['genres', 'price'], or with kinds { genres: 'values', price: 'number' }",
    });
  if (id !== undefined && names.includes(id))
    throw new UsageError(`columns of ${what} name the column of ids, ${id}`, {
      advice: 'Leave it out there',
    });
  if (!Array.isArray(columns))
    for (const [name, kind] of Object.entries(columns))
      if (kind !== undefined) oneOf(`the kind of ${name} in ${what}`, kind, attributeKinds);
}

/** Reads the data twice: for the encoding, and for the rows. */
async function readSide(
  side: AttributeSide,
  { data, id: given, columns, minCount = attributeParams.minCount.fallback }: AttributeOptions,
  ratedColumn: string,
  ctx: ExecutionContext,
): Promise<ReadAttributes> {
  requireReplayable(data, `reading the attributes of ${side}s`);
  const { fields } = await data.schema({ signal: ctx.signal });
  const names = fields.map(({ name }) => name);
  const id = given ?? idColumn(names, side, ratedColumn);
  const into = async <Result>(sink: Sink<Result>) =>
    runInto(await readyPlan(data, sink.requiredColumns(), ctx.signal), sink, ctx);
  const encoding = await into(learnEncoding(wantedColumns(names, id, columns), { minCount }));
  const rows = await into(encodeAttributes(new RowEncoder(encoding), id, encoding));
  reportRead(side, { encoding, rows }, ctx);
  return { id, encoding, rows };
}

function idColumn(names: readonly string[], side: AttributeSide, ratedColumn: string): string {
  const found = names.find((name) => name === ratedColumn) ?? likelyIdColumn(names, side);
  if (found !== undefined) return found;
  throw new DataError(`the attributes have no column of ${side} ids; there are: ${names.join(', ')}`, {
    phase: 'read attributes',
    advice: `Name it: ${side}Attributes: { data, id: '${names[0] ?? 'sku'}' }`,
  });
}

/** Opens a file of attributes. Its ids are read as text if those of the ratings are. */
export async function openAttributes(
  session: RunSession,
  path: string,
  {
    side,
    id: given,
    ratings,
  }: { readonly side: AttributeSide; readonly id?: string | undefined; readonly ratings: Dataset },
): Promise<Pick<AttributeOptions, 'data' | 'id'>> {
  const column = ratings.columns[side] ?? side;
  const { fields } = await ratings.schema();
  const type = fields.find(({ name }) => name === column)?.type;
  const idOf = ({ fields: own }: Schema) =>
    given ??
    idColumn(
      own.map(({ name }) => name),
      side,
      column,
    );
  const asText = type !== undefined && keyTypeOf(type, column) === 'utf8';
  const { source, id } = await openById(path, idOf, asText);
  return { data: datasetOf(session, source), id };
}

function wantedColumns(
  names: readonly string[],
  id: string,
  columns: AttributeOptions['columns'],
): WantedColumn[] {
  if (columns === undefined) return names.filter((name) => name !== id).map((name) => ({ name }));
  if (Array.isArray(columns)) return (columns as readonly string[]).map((name) => ({ name }));
  return Object.entries(columns as Readonly<Record<string, AttributeKind | undefined>>).map(
    ([name, kind]) => ({
      name,
      kind,
    }),
  );
}

function reportRead(
  side: AttributeSide,
  { encoding, rows }: Pick<ReadAttributes, 'encoding' | 'rows'>,
  { events }: ExecutionContext,
): void {
  const features = counted(rows.matrix.features, 'feature');
  const columns = encoding.columns.map(describeColumn).join('; ');
  events({
    type: 'note',
    text: `attributes of ${counted(keyCount(rows.ids), side)}, ${features}: ${columns}`,
  });
  if (rows.withoutId > 0)
    events({ type: 'note', text: `${counted(rows.withoutId, 'row')} of attributes without an id, left out` });
}
