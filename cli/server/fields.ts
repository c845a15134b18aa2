import { UsageError } from '../../engine/errors.ts';
import { nearestName } from '../../operators/params/nearest-name.ts';
import type { Id, JsonObject } from '../../index.ts';
import { shown } from '../options/kinds.ts';

/**
 * A value of a request, in its query or its body: the schema for the OpenAPI document and the function that
 * reads it. `read` gets undefined for a missing value, and throws UsageError naming the field.
 */
export interface Field<T> {
  readonly describe: string;
  readonly schema: JsonObject;
  readonly required?: boolean;
  readonly read: (given: unknown, name: string) => T;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;
export type FieldValues<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never;
};

/** Longest list of ids of a request. */
const MOST_IDS = 10_000;

export const idSchema = { type: ['integer', 'string'] };

/** The schema of an object in an answer, which always has all properties but the optional ones. */
export function answerSchema(
  properties: Readonly<Record<string, JsonObject>>,
  optional: Readonly<Record<string, JsonObject>> = {},
): JsonObject {
  return { type: 'object', properties: { ...properties, ...optional }, required: Object.keys(properties) };
}

export const listOf = (items: JsonObject): JsonObject => ({ type: 'array', items });

/** The schema of an object with these fields. */
export function schemaOf(fields: Fields): JsonObject {
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

/** Reads the fields of an object. Throws UsageError for an unknown field. */
export function readFields<F extends Fields>(fields: F, given: unknown, where: string): FieldValues<F> {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new UsageError(`the ${where} must be an object, got ${short(given)}`);
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(fields, name));
  if (unknown !== undefined) {
    const near = nearestName(unknown, Object.keys(fields));
    throw new UsageError(`the ${where} has an unknown field ${short(unknown)}`, {
      advice: near === undefined ? `Known are ${Object.keys(fields).join(', ') || 'none'}` : `Is it ${near}?`,
    });
  }
  const values = Object.entries(fields).map(([name, { read, required = false }]) => {
    const value: unknown = Object.hasOwn(given, name) ? (given as Record<string, unknown>)[name] : undefined;
    if (required && value === undefined) throw new UsageError(`the ${where} has no field ${name}`);
    return [name, read(value, name)];
  });
  return Object.fromEntries(values) as FieldValues<F>;
}

/** A value for a message, cut after a hundred characters. */
export function short(given: unknown): string {
  if (Array.isArray(given)) return `a list of ${given.length}`;
  if (typeof given === 'object' && given !== null) return 'an object';
  const text = shown(given) ?? String(given);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

export const countField: Field<number> = {
  describe: 'most entries of the list',
  schema: { type: 'integer', minimum: 1, maximum: 1000, default: 10 },
  read: (given, name) => {
    if (given === undefined) return 10;
    const value = typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : given;
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 1000) return value;
    throw new UsageError(`${name} must be a whole number from 1 to 1,000, got ${short(given)}`);
  },
};

/** Throws UsageError unless it is an id that JSON holds exactly. */
export function readId(given: unknown, name: string): Id {
  if (typeof given === 'string') return given;
  if (typeof given === 'number' && Number.isSafeInteger(given)) return given;
  const advice =
    typeof given === 'number' && Number.isInteger(given)
      ? { advice: 'Give whole numbers beyond 2^53 as text' }
      : {};
  throw new UsageError(`${name} must be an id, a whole number or a text, got ${short(given)}`, advice);
}

/** An id that is required. */
export function idField(describe: string): Field<Id> {
  return { describe, schema: idSchema, required: true, read: readId };
}

/** A list of ids: an array, or in a query a text with commas; a query may repeat the field. */
export function idsField(describe: string): Field<readonly Id[] | undefined> {
  const read = (given: unknown, name: string) => {
    if (given === undefined) return undefined;
    const parts = typeof given === 'string' ? given.split(',') : undefined;
    if (parts?.includes('')) throw new UsageError(`${name} has an empty id between its commas`);
    const list: unknown = parts ?? given;
    if (!Array.isArray(list) || list.length > MOST_IDS)
      throw new UsageError(
        `${name} must be a list of at most ${MOST_IDS.toLocaleString('en-US')} ids, got ${short(given)}`,
      );
    return list.map((id) => readId(id, name));
  };
  return { describe, schema: { type: 'array', maxItems: MOST_IDS, items: idSchema }, read };
}

export function choiceField<const C extends string>(
  describe: string,
  choices: readonly C[],
  fallback: NoInfer<C>,
): Field<C> {
  const read = (given: unknown, name: string) => {
    const found = given === undefined ? fallback : choices.find((choice) => choice === given);
    if (found !== undefined) return found;
    throw new UsageError(`${name} must be one of ${choices.join(', ')}, got ${short(given)}`);
  };
  return { describe, schema: { type: 'string', enum: choices, default: fallback }, read };
}
