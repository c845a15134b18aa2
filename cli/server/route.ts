import { UsageError } from '../../engine/errors.ts';
import type { Id, JsonObject } from '../../index.ts';
import { nearestName } from '../../operators/params/nearest-name.ts';
import type { LoadedModel, ServedModels } from './loaded-model.ts';
import { readId, short } from './read-id.ts';

/**
 * A value of a request, in its query or its body. Its JSON schema is the one description: values are read by
 * it, and the OpenAPI document has it. `default` of the schema replaces a missing value.
 */
export interface Field<T> {
  readonly describe: string;
  readonly schema: JsonObject;
  readonly required?: boolean;
  /** Only for the type of its values. */
  readonly type?: T;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;
export type FieldValues<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never;
};

/** The parts of a request that a route reads. */
export interface RouteInput<Q extends Fields, B extends Fields> {
  /** The ids in the path, by name. */
  readonly path: Readonly<Record<string, Id>>;
  readonly query: FieldValues<Q>;
  readonly body: FieldValues<B>;
  /** Fires if the request takes too long or the client has gone. */
  readonly signal: AbortSignal;
}

interface RouteSpec<Q extends Fields, B extends Fields> {
  readonly method: 'GET' | 'POST';
  /** Ids of the path are written {user}. */
  readonly path: string;
  readonly summary: string;
  readonly query?: Q;
  readonly body?: B;
  /** Schema of the answer. */
  readonly answer: JsonObject;
  /** True if the request changes the model for all clients. */
  readonly writes?: boolean;
  readonly respond: (
    input: RouteInput<Q, B>,
    loaded: LoadedModel,
    models: Pick<ServedModels, 'add'>,
  ) => Promise<object>;
}

/** A route as data: the server answers by it, and the OpenAPI document describes it. */
export interface Route extends Omit<RouteSpec<Fields, Fields>, 'query' | 'body'> {
  /** Schemas of the query and of the body. */
  readonly query: ObjectSchema;
  readonly body: ObjectSchema;
}

/** A route, independent of the types of its fields. */
export function defineRoute<
  Q extends Fields = Record<never, never>,
  B extends Fields = Record<never, never>,
>({ query, body, respond, ...rest }: RouteSpec<Q, B>): Route {
  return {
    ...rest,
    query: schemaOf(query ?? {}),
    body: schemaOf(body ?? {}),
    respond: (input, ...given) => respond(input as RouteInput<Q, B>, ...given),
  };
}

export type ObjectSchema = JsonObject & {
  readonly properties: Readonly<Record<string, JsonObject>>;
  readonly required: readonly string[];
};

/** The schema of an object with these fields. */
export function schemaOf(fields: Fields): ObjectSchema {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    required: entries.flatMap(([name, { required }]) => (required ? [name] : [])),
    properties: Object.fromEntries(
      entries.map(([name, { schema, describe }]) => [name, { ...schema, description: describe }]),
    ),
    additionalProperties: false,
  };
}

/** The schema of an object in an answer, which always has all properties but the optional ones. */
export function answerSchema(
  properties: Readonly<Record<string, JsonObject>>,
  optional: Readonly<Record<string, JsonObject>> = {},
): JsonObject {
  return { type: 'object', properties: { ...properties, ...optional }, required: Object.keys(properties) };
}

export const listOf = (items: JsonObject): JsonObject => ({ type: 'array', items });

export const idSchema = { type: ['integer', 'string'] };

/** Reads an object by its schema. Throws UsageError that names the field. */
export function readObject(
  { properties, required }: ObjectSchema,
  given: unknown,
  where: string,
): Readonly<Record<string, unknown>> {
  const object = objectOf(given, where);
  const unknown = Object.keys(object).find((name) => !Object.hasOwn(properties, name));
  if (unknown !== undefined) {
    const names = Object.keys(properties);
    const near = nearestName(unknown, names);
    throw new UsageError(`the ${where} has an unknown field ${short(unknown)}`, {
      advice: near === undefined ? `Known are ${names.join(', ') || 'none'}` : `Is it ${near}?`,
    });
  }
  const values = Object.entries(properties).map(([name, schema]) => {
    const value: unknown = Object.hasOwn(object, name) ? object[name] : undefined;
    if (value !== undefined) return [name, readValue(schema, value, name)];
    if (required.includes(name)) throw new UsageError(`the ${where} has no field ${name}`);
    return [name, schema.default];
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** A value of a query or a body: a query has texts alone. */
function readValue(schema: JsonObject, given: unknown, name: string): unknown {
  if (Array.isArray(schema.type)) return readId(given, name);
  if (schema.type === 'array') return readList(schema, given, name);
  if (schema.type === 'object') return objectOf(given, `field ${name}`);
  if (isOf(schema, given)) return schema.type === 'integer' ? Number(given) : given;
  throw new UsageError(`${name} must be ${meaningOf(schema)}, got ${short(given)}`);
}

function isOf({ type, enum: choices, minimum, maximum, maxLength }: JsonObject, given: unknown): boolean {
  if (Array.isArray(choices)) return choices.includes(given as string);
  if (type === 'number') return typeof given === 'number' && Number.isFinite(given);
  if (type === 'string')
    return typeof given === 'string' && given.trim() !== '' && given.length <= Number(maxLength);
  const value = typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : given;
  return Number.isInteger(value) && Number(value) >= Number(minimum) && Number(value) <= Number(maximum);
}

/** The values that fit a schema: "a whole number from 1 to 1,000". */
function meaningOf({ type, enum: choices, minimum, maximum, maxLength }: JsonObject): string {
  if (Array.isArray(choices)) return `one of ${choices.join(', ')}`;
  if (type === 'number') return 'a number';
  if (type === 'string') return `a text of at most ${counted(maxLength)} characters`;
  return `a whole number from ${counted(minimum)} to ${counted(maximum)}`;
}

/** A list: an array, or in a query a text with commas; a query may repeat the field. */
function readList({ items, minItems = 0, maxItems }: JsonObject, given: unknown, name: string): unknown[] {
  const item = items as JsonObject;
  const isIds = item.type !== 'object';
  const parts = isIds && minItems === 0 && typeof given === 'string' ? given.split(',') : given;
  if (!Array.isArray(parts) || parts.length < Number(minItems) || parts.length > Number(maxItems))
    throw new UsageError(
      `${name} must be a list of ${minItems === 0 ? 'at most' : `${counted(minItems)} to`} ` +
        `${counted(maxItems)} ${isIds ? 'ids' : name}, got ${short(given)}`,
    );
  if (typeof given === 'string' && parts.includes(''))
    throw new UsageError(`${name} has an empty id between its commas`);
  return parts.map((one, at) => {
    const what = `${name.slice(0, -1)} ${at + 1}`;
    if (isIds) return readId(one, name);
    return item.additionalProperties === true
      ? objectOf(one, what)
      : readObject(item as ObjectSchema, one, what);
  });
}

/** Returns an object of any fields. Throws UsageError for anything else. */
function objectOf(given: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof given === 'object' && given !== null && !Array.isArray(given))
    return given as Readonly<Record<string, unknown>>;
  throw new UsageError(`the ${where} must be an object, got ${short(given)}`);
}

const counted = (value: unknown) => Number(value).toLocaleString('en-US');
